// Ctrl-C and SIGTERM while the main thread itself is in a user's own code that does not return.
//
// Steps that have always been cheap run in the calling thread, since handing them to another would cost more than they
// do. If one of them hangs, Python cannot act on a signal until it returns, and nothing can stop it safely. So a thread
// of ours notices it, and from then on the first Ctrl-C is answered by a line that names the header, and the second one
// ends the process. SIGTERM ends it after two seconds.
#pragma once

namespace raceway {

// Watches the calling thread from now on, in this process. Called again, it does nothing.
void watch_this_thread();

}  // namespace raceway

// For CPUs with AVX2 and fused multiply-adds. Nothing here runs before it is known that this is one.
#include "kernel_code.hpp"

namespace raceway {

#if defined(__AVX2__) && defined(__FMA__)
constinit const Kernel kAvx2Kernel{"avx2", dense, activate, exponentials, logarithms, words, normals};
#else
constinit const Kernel kAvx2Kernel{};
#endif

}  // namespace raceway

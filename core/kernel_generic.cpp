// For any CPU that the compiler knows.
#include "kernel_code.hpp"

namespace raceway {

const Kernel kGenericKernel{"generic", dense, activate, exponentials, logarithms, words, normals};

const Kernel* avx2_kernel() {
#if defined(__x86_64__)
  if (kAvx2Kernel.dense && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &kAvx2Kernel;
#endif
  return nullptr;
}

const Kernel& best_kernel() {
  static const Kernel& kBest = avx2_kernel() ? *avx2_kernel() : kGenericKernel;
  return kBest;
}

}  // namespace raceway

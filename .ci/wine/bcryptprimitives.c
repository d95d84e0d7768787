/* Random numbers for programs of Rust under a Wine that lacks this library: they
 * want ProcessPrng of it, and Wine before version 9 has none. */
#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T count)
{
    return RtlGenRandom(bytes, count);
}

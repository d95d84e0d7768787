// The book of the threads that UDT makes.
//
// UDT makes three kinds of threads: one that collects garbage, and two for
// each UDP socket. It is compiled with `pthread_create` replaced by
// `lagometer_udt_pthread_create`, so that each is known from its first
// instruction to its last, and belongs to an owner: the number that the making
// thread named before it called UDT. Nought owns what nobody named.

#ifndef LAGOMETER_UDT_THREADS_H
#define LAGOMETER_UDT_THREADS_H

#include <stdint.h>

// While it lives, threads made by the calling thread belong to `owner`.
class ThreadsOwnedBy
{
public:
   explicit ThreadsOwnedBy(uint64_t owner);
   ~ThreadsOwnedBy();

private:
   uint64_t m_before;
};

extern "C"
{
// A number under which threads can be owned. Kept until it is forgotten.
uint64_t lagometer_udt_owner_new();
// No more is asked of this owner. What is known of it goes with its last thread.
void lagometer_udt_owner_forget(uint64_t owner);
// The processor time of the owner's threads, those included that have ended, in
// nanoseconds.
uint64_t lagometer_udt_owner_cpu_ns(uint64_t owner);
// How many of the owner's threads are alive.
int lagometer_udt_owner_threads(uint64_t owner);
}

#endif

#include "threads.h"

#include <map>
#include <new>

#include <pthread.h>
#include <sched.h>
#include <time.h>

namespace
{

struct Book
{
   uint64_t ended_ns = 0;
   bool asked_of = true;
   std::map<uint64_t, clockid_t> alive;
};

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
uint64_t last_owner = 0;
uint64_t last_thread = 0;
thread_local uint64_t owner_of_the_made = 0;

// Never destroyed: UDT's threads may outlive the destructors of globals.
std::map<uint64_t, Book>& books()
{
   static std::map<uint64_t, Book>* all = new std::map<uint64_t, Book>;
   return *all;
}

class Locked
{
public:
   Locked() { pthread_mutex_lock(&lock); }
   ~Locked() { pthread_mutex_unlock(&lock); }
};

uint64_t read_ns(clockid_t clock)
{
   timespec t;
   if (0 != clock_gettime(clock, &t))
      return 0;
   return uint64_t(t.tv_sec) * 1000000000ULL + uint64_t(t.tv_nsec);
}

struct Start
{
   void* (*routine)(void*);
   void* argument;
   uint64_t owner;
   uint64_t thread;
};

void drop_if_done(std::map<uint64_t, Book>::iterator book)
{
   if (!book->second.asked_of && book->second.alive.empty())
      books().erase(book);
}

void* run(void* given)
{
   Start start = *static_cast<Start*>(given);
   delete static_cast<Start*>(given);

   // Whatever made it, a thread of UDT's must not stand before those that
   // measure: a router under a real-time policy would hand that policy down.
   int policy;
   sched_param parameters;
   if (0 == pthread_getschedparam(pthread_self(), &policy, &parameters) && policy != SCHED_OTHER)
   {
      parameters.sched_priority = 0;
      pthread_setschedparam(pthread_self(), SCHED_OTHER, &parameters);
   }
   pthread_setname_np(pthread_self(), "udt");

   {
      clockid_t clock;
      Locked locked;
      if (0 == pthread_getcpuclockid(pthread_self(), &clock))
         books()[start.owner].alive[start.thread] = clock;
   }

   void* result = start.routine(start.argument);

   {
      Locked locked;
      std::map<uint64_t, Book>::iterator book = books().find(start.owner);
      if (book != books().end())
      {
         book->second.ended_ns += read_ns(CLOCK_THREAD_CPUTIME_ID);
         book->second.alive.erase(start.thread);
         drop_if_done(book);
      }
   }
   return result;
}

}  // namespace

ThreadsOwnedBy::ThreadsOwnedBy(uint64_t owner):
m_before(owner_of_the_made)
{
   owner_of_the_made = owner;
}

ThreadsOwnedBy::~ThreadsOwnedBy()
{
   owner_of_the_made = m_before;
}

extern "C"
{

__attribute__((visibility("default")))
int lagometer_udt_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*), void* argument)
{
   Start* start = new (std::nothrow) Start;
   if (NULL == start)
      return 12;  // ENOMEM
   start->routine = routine;
   start->argument = argument;
   start->owner = owner_of_the_made;
   {
      Locked locked;
      start->thread = ++ last_thread;
      // Counted before it runs, so that an owner is never seen without it.
      books()[start->owner].alive[start->thread] = CLOCK_MONOTONIC_COARSE;
   }
   int failed = pthread_create(thread, attributes, run, start);
   if (0 != failed)
   {
      Locked locked;
      std::map<uint64_t, Book>::iterator book = books().find(start->owner);
      if (book != books().end())
      {
         book->second.alive.erase(start->thread);
         drop_if_done(book);
      }
      delete start;
   }
   return failed;
}

uint64_t lagometer_udt_owner_new()
{
   Locked locked;
   books()[++ last_owner];
   return last_owner;
}

void lagometer_udt_owner_forget(uint64_t owner)
{
   Locked locked;
   std::map<uint64_t, Book>::iterator book = books().find(owner);
   if (book == books().end())
      return;
   book->second.asked_of = false;
   drop_if_done(book);
}

uint64_t lagometer_udt_owner_cpu_ns(uint64_t owner)
{
   Locked locked;
   std::map<uint64_t, Book>::const_iterator book = books().find(owner);
   if (book == books().end())
      return 0;
   uint64_t total = book->second.ended_ns;
   for (std::map<uint64_t, clockid_t>::const_iterator i = book->second.alive.begin(); i != book->second.alive.end(); ++ i)
   {
      // A thread leaves the book before it ends, so its clock is still there;
      // one that has not begun has used nothing.
      if (CLOCK_MONOTONIC_COARSE != i->second)
         total += read_ns(i->second);
   }
   return total;
}

int lagometer_udt_owner_threads(uint64_t owner)
{
   Locked locked;
   std::map<uint64_t, Book>::const_iterator book = books().find(owner);
   return book == books().end() ? 0 : int(book->second.alive.size());
}

}

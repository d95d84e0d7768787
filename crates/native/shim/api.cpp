// UDT's interface without C++: no exception crosses it, no type of C++ shows.
// Every function returns what UDT returns; after an error, `lagometer_udt_error`
// says which, for the calling thread.

#include "fixed_window.h"
#include "rate_control_4_10.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include <udt/udt.h>

namespace
{

// An exception that UDT lets through (it lets some out of allocations).
thread_local bool threw = false;

template <class Call>
int guarded(Call call)
{
   threw = false;
   try
   {
      return call();
   }
   catch (...)
   {
      threw = true;
      return UDT::ERROR;
   }
}

}  // namespace

extern "C"
{

struct lagometer_udt_statistics
{
   int64_t sent_packets;
   int64_t received_packets;
   int32_t resent_packets;
   int32_t lost_packets_sent;
   int32_t lost_packets_received;
   int32_t flight_packets;
   int32_t window_packets;
   int32_t reserved;
   double period_us;
   double round_trip_ms;
   double bandwidth_mbit_per_s;
};

int lagometer_udt_startup()
{
   return guarded([] { return UDT::startup(); });
}

int lagometer_udt_cleanup()
{
   return guarded([] { return UDT::cleanup(); });
}

// The code of the last error of this thread; -2 where UDT threw something that
// it has no code for.
int lagometer_udt_error(int* system_error)
{
   if (threw)
   {
      *system_error = 0;
      return -2;
   }
   *system_error = errno;
   return UDT::getlasterror_code();
}

int lagometer_udt_socket(int ipv6, int messages)
{
   return guarded([=] { return UDT::socket(ipv6 ? AF_INET6 : AF_INET, messages ? SOCK_DGRAM : SOCK_STREAM, 0); });
}

// Takes the UDP socket over. The threads it needs are made here, by the calling
// thread.
int lagometer_udt_bind(int socket, int udp)
{
   return guarded([=] { return UDT::bind2(socket, udp); });
}

int lagometer_udt_listen(int socket, int backlog)
{
   return guarded([=] { return UDT::listen(socket, backlog); });
}

int lagometer_udt_accept(int socket, sockaddr* peer, int* peer_length)
{
   return guarded([=] { return UDT::accept(socket, peer, peer_length); });
}

int lagometer_udt_connect(int socket, const sockaddr* peer, int peer_length)
{
   return guarded([=] { return UDT::connect(socket, peer, peer_length); });
}

int lagometer_udt_close(int socket)
{
   return guarded([=] { return UDT::close(socket); });
}

int lagometer_udt_state(int socket)
{
   return guarded([=] { return int(UDT::getsockstate(socket)); });
}

int lagometer_udt_set_int(int socket, int option, int value)
{
   return guarded([=] { return UDT::setsockopt(socket, 0, UDTOpt(option), &value, sizeof value); });
}

int lagometer_udt_set_bool(int socket, int option, int value)
{
   bool as_bool = 0 != value;
   return guarded([=] { return UDT::setsockopt(socket, 0, UDTOpt(option), &as_bool, sizeof as_bool); });
}

int lagometer_udt_set_linger(int socket, int seconds)
{
   linger value;
   value.l_onoff = seconds > 0;
   value.l_linger = seconds;
   return guarded([=] { return UDT::setsockopt(socket, 0, UDT_LINGER, &value, sizeof value); });
}

int lagometer_udt_set_rate_control_4_10(int socket)
{
   return guarded([=] {
      CCCFactory<RateControl410> factory;
      return UDT::setsockopt(socket, 0, UDT_CC, &factory, sizeof factory);
   });
}

int lagometer_udt_set_fixed_window(int socket, int window_packets, int timeout_us, int repeats_reports)
{
   return guarded([=] {
      FixedWindowFactory factory(FixedWindowSettings{window_packets, timeout_us, 0 != repeats_reports});
      return UDT::setsockopt(socket, 0, UDT_CC, &factory, sizeof factory);
   });
}

int lagometer_udt_get_int(int socket, int option, int* value)
{
   int length = sizeof *value;
   return guarded([&] { return UDT::getsockopt(socket, 0, UDTOpt(option), value, &length); });
}

int lagometer_udt_send(int socket, const char* bytes, int length)
{
   return guarded([=] { return UDT::send(socket, bytes, length, 0); });
}

int lagometer_udt_send_message(int socket, const char* bytes, int length, int lifetime_ms, int in_order)
{
   return guarded([=] { return UDT::sendmsg(socket, bytes, length, lifetime_ms, 0 != in_order); });
}

int lagometer_udt_receive(int socket, char* bytes, int length)
{
   return guarded([=] { return UDT::recv(socket, bytes, length, 0); });
}

int lagometer_udt_receive_message(int socket, char* bytes, int length)
{
   return guarded([=] { return UDT::recvmsg(socket, bytes, length); });
}

int lagometer_udt_poll_new()
{
   return guarded([] { return UDT::epoll_create(); });
}

int lagometer_udt_poll_add(int poll, int socket, int events)
{
   return guarded([=] { return UDT::epoll_add_usock(poll, socket, &events); });
}

int lagometer_udt_poll_remove(int poll, int socket)
{
   return guarded([=] { return UDT::epoll_remove_usock(poll, socket); });
}

int lagometer_udt_poll_wait(int poll, int* readable, int* readable_count, int* writable, int* writable_count, int64_t timeout_ms)
{
   return guarded([=] { return UDT::epoll_wait2(poll, readable, readable_count, writable, writable_count, timeout_ms); });
}

int lagometer_udt_poll_release(int poll)
{
   return guarded([=] { return UDT::epoll_release(poll); });
}

int lagometer_udt_statistics(int socket, lagometer_udt_statistics* out)
{
   UDT::TRACEINFO trace;
   memset(&trace, 0, sizeof trace);
   int result = guarded([&] { return UDT::perfmon(socket, &trace, false); });
   if (UDT::ERROR == result)
      return result;
   out->sent_packets = trace.pktSentTotal;
   out->received_packets = trace.pktRecvTotal;
   out->resent_packets = trace.pktRetransTotal;
   out->lost_packets_sent = trace.pktSndLossTotal;
   out->lost_packets_received = trace.pktRcvLossTotal;
   out->flight_packets = trace.pktFlightSize;
   out->window_packets = trace.pktCongestionWindow;
   out->reserved = 0;
   out->period_us = trace.usPktSndPeriod;
   out->round_trip_ms = trace.msRTT;
   out->bandwidth_mbit_per_s = trace.mbpsBandwidth;
   return result;
}

// The processor time of a thread of this process, in nanoseconds; -1 where there
// is none of this number.
int64_t lagometer_udt_thread_cpu_ns(int thread)
{
   // As the kernel numbers the clocks of threads (include/linux/posix-timers.h):
   // the complement of the thread, one bit for "of a thread", two for "all that
   // the scheduler gave it".
   clockid_t clock = clockid_t((~ unsigned(thread) << 3) | 4 | 2);
   timespec t;
   if (thread <= 0 || 0 != clock_gettime(clock, &t))
      return -1;
   return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

// Gives a thread of this process the ordinary policy, whatever its maker's is.
void lagometer_udt_make_ordinary(int thread)
{
   sched_param parameters;
   parameters.sched_priority = 0;
   if (thread > 0)
      sched_setscheduler(thread, SCHED_OTHER, &parameters);
}

}

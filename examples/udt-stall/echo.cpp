// UDT by itself, and nothing of Lagometer: messages of 500 B, one every 50 ms,
// which a server sends back. It shows what the library does over a path that loses
// packets; docs/virtual-kernel.md says how to play it.
//
//     c++ -o udt-echo echo.cpp -ludt -lpthread      (libudt-dev)
//     udt-echo serve | udt-echo play ADDRESS SECONDS

#include <udt/udt.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <vector>

namespace
{

const int PORT = 9000;
const double INTERVAL_S = 0.05;
// The play ends by itself so long after the last message was due.
const double TIMEOUT_S = 20;

typedef std::vector<char> Message;

double now_s()
{
   timespec t;
   clock_gettime(CLOCK_MONOTONIC, &t);
   return double(t.tv_sec) + double(t.tv_nsec) / 1e9;
}

// A socket that never waits, everything else as the library has it.
UDTSOCKET make_socket()
{
   UDTSOCKET made = UDT::socket(AF_INET, SOCK_DGRAM, 0);
   bool waits = false;
   UDT::setsockopt(made, 0, UDT_SNDSYN, &waits, sizeof waits);
   UDT::setsockopt(made, 0, UDT_RCVSYN, &waits, sizeof waits);
   return made;
}

void receive_all(UDTSOCKET from, std::deque<Message>& messages)
{
   char buffer[2000];
   for (;;)
   {
      int length = UDT::recvmsg(from, buffer, sizeof buffer);
      if (length <= 0)
         return;
      messages.push_back(Message(buffer, buffer + length));
   }
}

void send_all(UDTSOCKET to, std::deque<Message>& messages)
{
   // In order, without a time to live.
   while (!messages.empty() && UDT::sendmsg(to, messages.front().data(), int(messages.front().size()), -1, true) > 0)
      messages.pop_front();
}

int serve()
{
   sockaddr_in here = {};
   here.sin_family = AF_INET;
   here.sin_port = htons(PORT);
   UDTSOCKET listener = make_socket();
   if (UDT::ERROR == UDT::bind(listener, reinterpret_cast<sockaddr*>(&here), sizeof here))
      return 2;
   UDT::listen(listener, 1);
   UDTSOCKET player = UDT::INVALID_SOCK;
   std::deque<Message> messages;
   for (;; usleep(1000))
   {
      sockaddr_in from;
      int length = sizeof from;
      if (UDT::INVALID_SOCK == player)
         player = UDT::accept(listener, reinterpret_cast<sockaddr*>(&from), &length);
      else if (UDT::getsockstate(player) > CONNECTED)
         return 0;
      else
      {
         receive_all(player, messages);
         send_all(player, messages);
      }
   }
}

int play(const char* address, double seconds)
{
   sockaddr_in there = {};
   there.sin_family = AF_INET;
   there.sin_port = htons(PORT);
   inet_pton(AF_INET, address, &there.sin_addr);
   UDTSOCKET server = make_socket();
   UDT::connect(server, reinterpret_cast<sockaddr*>(&there), sizeof there);
   while (UDT::getsockstate(server) < CONNECTED)
      usleep(1000);

   const size_t count = size_t(seconds / INTERVAL_S);
   const double began = now_s();
   std::vector<double> round_trips;
   std::deque<Message> outgoing, incoming;
   for (size_t made = 0; round_trips.size() < count && now_s() < began + seconds + TIMEOUT_S; usleep(1000))
   {
      for (; made < count && now_s() - began >= double(made) * INTERVAL_S; ++ made)
      {
         Message message(500);
         memcpy(message.data(), &made, sizeof made);
         outgoing.push_back(message);
      }
      send_all(server, outgoing);
      receive_all(server, incoming);
      for (; !incoming.empty(); incoming.pop_front())
      {
         size_t number;
         memcpy(&number, incoming.front().data(), sizeof number);
         round_trips.push_back(now_s() - began - double(number) * INTERVAL_S);
      }
   }
   if (round_trips.empty())
      return 1;
   std::sort(round_trips.begin(), round_trips.end());
   printf("%zu of %zu came back; median %.0f ms, longest %.0f ms\n", round_trips.size(), count,
          round_trips[round_trips.size() / 2] * 1e3, round_trips.back() * 1e3);
   fflush(stdout);
   // The library would linger.
   _exit(0);
}

}  // namespace

int main(int count, char** words)
{
   UDT::startup();
   if (2 == count && 0 == strcmp(words[1], "serve"))
      return serve();
   if (4 == count && 0 == strcmp(words[1], "play"))
      return play(words[2], atof(words[3]));
   fprintf(stderr, "usage: %s serve | play ADDRESS SECONDS\n", words[0]);
   return 2;
}

// A UDP echo over asio, as its users write it: the peer of `lagometer echo`.
//
//   asio_echo server sync|async PORT
//   asio_echo client PORT SECONDS          prints echoes per second
//
// The client keeps one message of 8 bytes on its way.
#define ASIO_STANDALONE
#include <asio.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

using asio::ip::udp;

static void serve_sync(udp::socket &socket) {
  char data[2048];
  udp::endpoint peer;
  for (;;) {
    std::size_t size = socket.receive_from(asio::buffer(data), peer);
    socket.send_to(asio::buffer(data, size), peer);
  }
}

static void serve_async(asio::io_context &context, udp::socket &socket) {
  static char data[2048];
  static udp::endpoint peer;
  static std::function<void()> next;
  next = [&] {
    socket.async_receive_from(
        asio::buffer(data), peer, [&](std::error_code error, std::size_t size) {
          if (error) return;
          socket.async_send_to(asio::buffer(data, size), peer,
                               [&](std::error_code, std::size_t) { next(); });
        });
  };
  next();
  context.run();
}

int main(int count, char **words) {
  if (count < 4) return 2;
  asio::io_context context;
  if (!std::strcmp(words[1], "server")) {
    udp::socket socket(context, udp::endpoint(asio::ip::address_v4::loopback(),
                                              std::atoi(words[3])));
    if (!std::strcmp(words[2], "sync"))
      serve_sync(socket);
    else
      serve_async(context, socket);
    return 0;
  }
  udp::endpoint server(asio::ip::address_v4::loopback(), std::atoi(words[2]));
  udp::socket socket(context, udp::endpoint(udp::v4(), 0));
  double seconds = std::atof(words[3]);
  char data[8] = {0};
  long echoes = 0;
  udp::endpoint from;
  using clock = std::chrono::steady_clock;
  auto began = clock::now();
  double passed = 0;
  while (passed < seconds) {
    socket.send_to(asio::buffer(data), server);
    socket.receive_from(asio::buffer(data), from);
    ++echoes;
    passed = std::chrono::duration<double>(clock::now() - began).count();
  }
  std::printf("%f\n", echoes / passed);
}

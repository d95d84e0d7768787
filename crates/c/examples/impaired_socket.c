/* A game's own UDP sockets behind a seeded network, inside the process.
 *
 * A player sends its input 30 times a second, the server answers each at once. Both
 * have real UDP sockets of loopback; what they send goes through `impaired_send`, which
 * holds every datagram back for as long as the network would, and loses what it would
 * lose. The clock is the test's own and jumps from event to event: ten seconds on a bad
 * network take some milliseconds, and the same seed gives the same output on every
 * machine.
 *
 *     impaired_socket [NETWORK [SEED]]
 *
 * docs/embedding.md says how it is built.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <winsock2.h>
#include <ws2tcpip.h>
typedef SOCKET udp_socket;
#define close_socket closesocket
#else
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>
typedef int udp_socket;
#define close_socket close
#endif

#include "lagometer.h"

#define UP 0
#define DOWN 1
#define MILLISECOND ((uint64_t)1000000)
#define INPUTS 300
#define INPUT_EVERY (MILLISECOND * 1000 / 30)

static void give_up(const char *what) {
    fprintf(stderr, "impaired_socket: %s\n", what);
    exit(1);
}

/* A socket of loopback that another is known to. */
struct host {
    udp_socket socket;
    struct sockaddr_in peer;
    uint32_t sends;
};

static struct sockaddr_in bind_loopback(struct host *host) {
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    host->socket = socket(AF_INET, SOCK_DGRAM, IPPROTO_UDP);
    if (bind(host->socket, (struct sockaddr *)&address, sizeof address) != 0)
        give_up("no socket of loopback can be had");
    socklen_t length = sizeof address;
    if (getsockname(host->socket, (struct sockaddr *)&address, &length) != 0)
        give_up("a socket does not say its address");
    return address;
}

/* What the game calls instead of `sendto`. */
static void impaired_send(lagometer_network *network, const struct host *host, uint64_t now,
                          const void *datagram, size_t bytes) {
    lagometer_status status = lagometer_network_send(network, host->sends, now, datagram, bytes);
    if (status < 0)
        give_up("the network refused a datagram");
}

/* Hands what is due to the real sockets. */
static void deliver(lagometer_network *network, const struct host *from, uint64_t now) {
    uint8_t room[2048];
    int64_t bytes;
    while ((bytes = lagometer_network_receive(network, from->sends, now, room, sizeof room)) >= 0) {
        if (sendto(from->socket, (const char *)room, (size_t)bytes, 0,
                   (const struct sockaddr *)&from->peer, sizeof from->peer) != bytes)
            give_up("a real socket did not send");
    }
    if (bytes != LAGOMETER_STATUS_NOTHING)
        give_up("the network did not give a datagram out");
}

struct input {
    uint32_t number;
    uint64_t sent;
};

/* The next datagram that waits in a real socket; what was sent on loopback is there. */
static int take(const struct host *host, struct input *input) {
    fd_set readable;
    struct timeval at_once = {0, 0};
    FD_ZERO(&readable);
    FD_SET(host->socket, &readable);
    if (select((int)host->socket + 1, &readable, NULL, NULL, &at_once) <= 0)
        return 0;
    return recv(host->socket, (char *)input, sizeof *input, 0) == (int)sizeof *input;
}

static int by_size(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

int main(int count, char **arguments) {
    const char *name = count > 1 ? arguments[1] : "busy-wifi";
    uint64_t seed = count > 2 ? strtoull(arguments[2], NULL, 10) : 1;
    char why[256];
    lagometer_network *network = lagometer_network_new(name, seed, 0, why, sizeof why);
    if (network == NULL)
        give_up(why);
#ifdef _WIN32
    WSADATA data;
    if (WSAStartup(MAKEWORD(2, 2), &data) != 0)
        give_up("no sockets on this system");
#endif
    struct host player = {.sends = UP}, server = {.sends = DOWN};
    server.peer = bind_loopback(&player);
    player.peer = bind_loopback(&server);

    uint64_t now = 0, end = INPUTS * INPUT_EVERY + 5000 * MILLISECOND, next_input = 0;
    uint64_t round_trips[INPUTS];
    uint32_t sent = 0, answered = 0;
    struct input input;
    while (now < end) {
        while (sent < INPUTS && next_input <= now) {
            memset(&input, 0, sizeof input);
            input.number = sent++;
            input.sent = now;
            impaired_send(network, &player, now, &input, sizeof input);
            next_input += INPUT_EVERY;
        }
        deliver(network, &player, now);
        while (take(&server, &input))
            impaired_send(network, &server, now, &input, sizeof input);
        deliver(network, &server, now);
        /* A datagram that the network doubles is answered twice; the first counts. */
        static uint8_t seen[INPUTS];
        while (take(&player, &input)) {
            if (input.number < INPUTS && !seen[input.number]) {
                seen[input.number] = 1;
                round_trips[answered++] = now - input.sent;
            }
        }
        uint64_t arrival = end;
        if (lagometer_network_next_arrival(network, &arrival) != LAGOMETER_STATUS_OK)
            arrival = end;
        now = sent < INPUTS && next_input < arrival ? next_input : arrival;
    }
    qsort(round_trips, answered, sizeof round_trips[0], by_size);
    printf("%s, seed %" PRIu64 ": %u inputs, %u answered", name, seed, sent, answered);
    if (answered > 0)
        printf(", round trip p50 %.3f ms, p99 %.3f ms, longest %.3f ms",
               (double)round_trips[answered / 2] / MILLISECOND,
               (double)round_trips[answered * 99 / 100] / MILLISECOND,
               (double)round_trips[answered - 1] / MILLISECOND);
    printf("\n");
    close_socket(player.socket);
    close_socket(server.socket);
    lagometer_network_free(network);
    return 0;
}

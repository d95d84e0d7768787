/* Logs in at a gateway over KCP with the library for C, and says what came back:
 * kcp_login PORT. The other end is the one that is tried, so this runs on Linux. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lagometer.h"

static uint32_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint32_t)(now.tv_sec * 1000 + now.tv_nsec / 1000000);
}

int main(int count, char **arguments) {
    /* A frame, a packet, one message of type 1 (AUTH): a player "a", a token "b". */
    static const uint8_t login[] = {'C', 'H',  0, 12,   0,   0x0a, 10, 0x20, 1,
                                    0x2a, 6, 0x0a, 1, 'a', 0x12, 1, 'b'};
    struct sockaddr_in gateway = {.sin_family = AF_INET};
    gateway.sin_port = htons((uint16_t)(count > 1 ? atoi(arguments[1]) : 0));
    gateway.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int socket_of = socket(AF_INET, SOCK_DGRAM, 0);
    if (connect(socket_of, (struct sockaddr *)&gateway, sizeof gateway) != 0)
        return 1;
    lagometer_kcp_settings settings;
    lagometer_kcp_default_settings(&settings);
    settings.stream = 1;
    settings.interval_ms = 20;
    lagometer_kcp *kcp = lagometer_kcp_new(7, &settings, NULL, 0);
    if (lagometer_kcp_send(kcp, login, sizeof login) != sizeof login)
        return 1;
    uint8_t room[2048];
    int64_t bytes = LAGOMETER_STATUS_NOTHING;
    for (uint32_t begin = now_ms(); bytes < 0 && now_ms() - begin < 10000; usleep(5000)) {
        lagometer_kcp_update(kcp, now_ms());
        while ((bytes = lagometer_kcp_take_datagram(kcp, room, sizeof room)) >= 0)
            send(socket_of, room, (size_t)bytes, 0);
        ssize_t came;
        while ((came = recv(socket_of, room, sizeof room, MSG_DONTWAIT)) > 0)
            lagometer_kcp_input(kcp, room, (size_t)came);
        bytes = lagometer_kcp_receive(kcp, room, sizeof room);
    }
    lagometer_kcp_free(kcp);
    if (bytes < 5 || room[0] != 'C' || room[1] != 'H') {
        fprintf(stderr, "kcp_login: no frame came back\n");
        return 1;
    }
    printf("an answer of %d bytes\n", (int)bytes);
    return 0;
}

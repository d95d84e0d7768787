/* A shop over UDP, as server and as player, with a bug that needs a bad network.
 *
 * A player asks for an item and asks again after 200 ms without an answer. The shop
 * answers every request. See what happens when the network loses an answer and not
 * a request: the shop sells twice.
 *
 *     cc -g -o shop shop.c
 *     ./shop serve & ./shop play 127.0.0.1
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT = 4100, ITEMS = 50, PRICE = 3, AGAIN_MS = 200, EVERY_US = 100000 };

struct request { uint32_t item; };
struct answer { uint32_t item, gold; };

static uint32_t gold = ITEMS * PRICE;

static void sell(uint32_t item)
{
    gold -= PRICE;
    printf("item %u sold, %u gold left\n", item, gold);
}

static void serve(int fd)
{
    for (;;) {
        struct request request;
        struct sockaddr_in from;
        socklen_t length = sizeof from;
        if (recvfrom(fd, &request, sizeof request, 0, (struct sockaddr *)&from, &length)
            != sizeof request)
            continue;
        sell(request.item);
        struct answer answer = { request.item, gold };
        sendto(fd, &answer, sizeof answer, 0, (struct sockaddr *)&from, length);
    }
}

static uint32_t buy(int fd, uint32_t item)
{
    for (;;) {
        struct request request = { item };
        send(fd, &request, sizeof request, 0);
        struct pollfd ready = { .fd = fd, .events = POLLIN };
        while (poll(&ready, 1, AGAIN_MS) > 0) {
            struct answer answer;
            if (recv(fd, &answer, sizeof answer, 0) == sizeof answer && answer.item == item)
                return answer.gold;
        }
    }
}

static int play(int fd)
{
    for (uint32_t item = 1; item <= ITEMS; item++) {
        uint32_t left = buy(fd, item), due = (ITEMS - item) * PRICE;
        if (left != due) {
            printf("after item %u there are %u gold and not %u\n", item, left, due);
            return 1;
        }
        usleep(EVERY_US);
    }
    printf("%d items for %d gold\n", ITEMS, ITEMS * PRICE);
    return 0;
}

int main(int count, char **words)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(PORT) };
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count == 2 && !strcmp(words[1], "serve"))
        return bind(fd, (struct sockaddr *)&at, sizeof at) ? perror("bind"), 2 : (serve(fd), 0);
    if (count == 3 && !strcmp(words[1], "play") && inet_pton(AF_INET, words[2], &at.sin_addr) == 1)
        return connect(fd, (struct sockaddr *)&at, sizeof at) ? perror("connect"), 2 : play(fd);
    fprintf(stderr, "usage: shop serve | shop play ADDRESS\n");
    return 2;
}

/* The link model and KCP for programs in C and C++: a bad network, the same each time,
 * inside a game's own tests. Made from the crate `lagometer-c`; docs/embedding.md says
 * how to use it. */

#ifndef LAGOMETER_H
#define LAGOMETER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * What a function answers where it does not answer a length: 0 or more is success.
 */
enum lagometer_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Done; of a datagram that was sent: it arrives, once or twice.
   */
  LAGOMETER_STATUS_OK = 0,
  /**
   * The datagram was lost on the way; a sender on a real network is not notified.
   */
  LAGOMETER_STATUS_LOST = 1,
  /**
   * There is nothing: no datagram is due, no message is whole.
   */
  LAGOMETER_STATUS_NOTHING = -1,
  /**
   * An argument cannot be: a null pointer, a direction that is neither up nor down,
   * a length beyond what there can be. Nothing was done.
   */
  LAGOMETER_STATUS_INVALID_ARGUMENT = -2,
  /**
   * The memory that was given is too small for what there is. Nothing was taken.
   */
  LAGOMETER_STATUS_ROOM_TOO_SMALL = -3,
  /**
   * The datagram is larger than the path takes (`EMSGSIZE` of a socket), or the
   * message has more segments than KCP takes.
   */
  LAGOMETER_STATUS_TOO_LARGE = -4,
  /**
   * More is on its way already than is kept. Nothing was taken.
   */
  LAGOMETER_STATUS_NO_ROOM = -5,
  /**
   * The datagram is none of this conversation. What came before in it was taken.
   */
  LAGOMETER_STATUS_BAD_DATAGRAM = -6,
  /**
   * A defect of this library was met earlier: whatever this is about does nothing
   * any more, and is to be freed.
   */
  LAGOMETER_STATUS_BROKEN = -7,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum lagometer_status lagometer_status;
#else
typedef int32_t lagometer_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * One end of a KCP conversation. C holds it by a pointer alone.
 */
typedef struct lagometer_kcp lagometer_kcp;

/**
 * A seeded network between a player, who sends up, and a server, who sends down, with
 * the datagrams on their way. C holds it by a pointer alone.
 */
typedef struct lagometer_network lagometer_network;

/**
 * How a conversation behaves; `lagometer_kcp_default_settings` fills in what the
 * reference's `ikcp_create` sets. Both ends should have the same.
 */
typedef struct lagometer_kcp_settings {
  /**
   * 0, 1 or 2, as `ikcp_nodelay` has it: how long a first acknowledgement is waited
   * for, and how fast the timeout grows.
   */
  uint8_t nodelay;
  /**
   * Whether the congestion window limits sending: 0, or 1 and anything else.
   */
  uint8_t congestion_control;
  /**
   * Whether messages are one stream of bytes without borders: 0, or 1 and anything
   * else.
   */
  uint8_t stream;
  /**
   * Milliseconds between flushes; 10 to 5000.
   */
  uint32_t interval_ms;
  /**
   * Skips after which a segment is sent again before its timeout; 0: never.
   */
  uint32_t resend;
  /**
   * Segments that may be in flight; 1 or more.
   */
  uint16_t send_window;
  /**
   * Segments kept for the application and for reassembly; 128 or more.
   */
  uint16_t receive_window;
  /**
   * The largest datagram, in bytes; 50 to 65507.
   */
  uint32_t mtu;
  /**
   * The least timeout in milliseconds, at most 60000; 0: 100 without `nodelay`, 30
   * with it.
   */
  uint32_t minimum_rto_ms;
  /**
   * Transmissions of one segment after which the conversation is dead; 0: never.
   */
  uint32_t dead_link;
} lagometer_kcp_settings;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library: major × 1,000,000 + minor × 1,000 + patch.
 */
uint32_t lagometer_version(void);

/**
 * Fills in the settings that `ikcp_create` of the reference sets; null is left alone.
 *
 * # Safety
 *
 * `settings` is null or can be written.
 */
void lagometer_kcp_default_settings(struct lagometer_kcp_settings *settings);

/**
 * Makes one end of the conversation so numbered; the other end must have the same
 * number. `settings` may be null: the reference's. Null where a setting is out of its
 * range: `why` then says which on one line, cut to `why_bytes`; it may be null.
 *
 * # Safety
 *
 * `settings` is null or can be read, all of it initialised; `why` is null or has room
 * for `why_bytes`.
 */
struct lagometer_kcp *lagometer_kcp_new(uint32_t conversation,
                                        const struct lagometer_kcp_settings *settings,
                                        char *why,
                                        size_t why_bytes);

/**
 * Ends a conversation; null is nothing to end.
 *
 * # Safety
 *
 * `kcp` is null, or of `lagometer_kcp_new` and not freed yet.
 */
void lagometer_kcp_free(struct lagometer_kcp *kcp);

/**
 * Queues a message, or bytes of a stream, for the next flush, and answers how many
 * bytes were taken: all; or, where the rest of a stream's would be 128 segments or more,
 * those that filled up the last one that waits; or a negative status,
 * `LAGOMETER_STATUS_TOO_LARGE` where there are none. How much waits,
 * `lagometer_kcp_waiting` says: a program stops sending where the peer does not keep
 * up.
 *
 * # Safety
 *
 * `kcp` is null, or of `lagometer_kcp_new`, not freed, and used by no other thread
 * now; `message` is null or can be read for `message_bytes`.
 */
int64_t lagometer_kcp_send(struct lagometer_kcp *kcp,
                           const uint8_t *message,
                           size_t message_bytes);

/**
 * Takes in a datagram that came from the peer.
 *
 * # Safety
 *
 * `kcp` is null, or of `lagometer_kcp_new`, not freed, and used by no other thread
 * now; `datagram` is null or can be read for `datagram_bytes`.
 */
lagometer_status lagometer_kcp_input(struct lagometer_kcp *kcp,
                                     const uint8_t *datagram,
                                     size_t datagram_bytes);

/**
 * Sets the clock, which may wrap, and makes the datagrams that are due by it: they are
 * taken out by `lagometer_kcp_take_datagram`.
 *
 * # Safety
 *
 * `kcp` is null, or of `lagometer_kcp_new`, not freed, and used by no other thread
 * now.
 */
lagometer_status lagometer_kcp_update(struct lagometer_kcp *kcp, uint32_t now_ms);

/**
 * Writes to `due_ms` when, on the program's clock, `lagometer_kcp_update` has
 * something to do next.
 *
 * # Safety
 *
 * `kcp` is null, or of `lagometer_kcp_new`, not freed, and used by no other thread
 * now; `due_ms` is null or can be written.
 */
lagometer_status lagometer_kcp_check(struct lagometer_kcp *kcp,
                                     uint32_t now_ms,
                                     uint32_t *due_ms);

/**
 * Takes out the next datagram to be sent, and answers its length, or a negative
 * status: `LAGOMETER_STATUS_NOTHING` when there is none, `LAGOMETER_STATUS_ROOM_TOO_SMALL` when it is
 * longer than `room_bytes` (it stays). The `mtu` of the settings is room for any.
 *
 * # Safety
 *
 * `kcp` is null, or of `lagometer_kcp_new`, not freed, and used by no other thread
 * now; `room` is null or can be written for `room_bytes`.
 */
int64_t lagometer_kcp_take_datagram(struct lagometer_kcp *kcp,
                                    uint8_t *room,
                                    size_t room_bytes);

/**
 * Takes out the next message, or the next bytes of a stream, and answers its length,
 * or a negative status as `lagometer_kcp_take_datagram` does.
 *
 * # Safety
 *
 * `kcp` is null, or of `lagometer_kcp_new`, not freed, and used by no other thread
 * now; `room` is null or can be written for `room_bytes`.
 */
int64_t lagometer_kcp_receive(struct lagometer_kcp *kcp, uint8_t *room, size_t room_bytes);

/**
 * How many segments wait to be sent or acknowledged; or a negative status.
 *
 * # Safety
 *
 * `kcp` is null, or of `lagometer_kcp_new`, not freed, and used by no other thread
 * now.
 */
int64_t lagometer_kcp_waiting(struct lagometer_kcp *kcp);

/**
 * Whether a segment was sent as often as `dead_link` allows: 1 or 0; or a negative
 * status.
 *
 * # Safety
 *
 * `kcp` is null, or of `lagometer_kcp_new`, not freed, and used by no other thread
 * now.
 */
int32_t lagometer_kcp_is_dead(struct lagometer_kcp *kcp);

/**
 * Makes the network that `description` names, such as `busy-wifi`, or describes in
 * TOML, with the dice of `seed`. It begins at `start_ns` of the program's clock and
 * lasts 30 days: an instant before is taken as its begin, one after its end is refused.
 * Null where there is no such network: `why` then says why on one line, cut to
 * `why_bytes`; it may be null.
 *
 * # Safety
 *
 * `description` is null or ends in a zero byte; `why` is null or has room for
 * `why_bytes`.
 */
struct lagometer_network *lagometer_network_new(const char *description,
                                                uint64_t seed,
                                                uint64_t start_ns,
                                                char *why,
                                                size_t why_bytes);

/**
 * Ends a network and what is on its way; null is nothing to end.
 *
 * # Safety
 *
 * `network` is null, or of `lagometer_network_new` and not freed yet.
 */
void lagometer_network_free(struct lagometer_network *network);

/**
 * Puts a datagram on the network at `now_ns`, upwards (0) or downwards (1); headers of
 * UDP and IPv4 are counted with it. `LAGOMETER_STATUS_OK` if it arrives, `LAGOMETER_STATUS_LOST` if it
 * does not, which a game on a real network is not notified.
 *
 * # Safety
 *
 * `network` is null, or of `lagometer_network_new`, not freed, and used by no other
 * thread now; `datagram` is null or can be read for `datagram_bytes`.
 */
lagometer_status lagometer_network_send(struct lagometer_network *network,
                                        uint32_t direction_number,
                                        uint64_t now_ns,
                                        const uint8_t *datagram,
                                        size_t datagram_bytes);

/**
 * Takes out the next datagram that has come in that direction by `now_ns`, and answers
 * its length, or a negative status: `LAGOMETER_STATUS_NOTHING` when none is due,
 * `LAGOMETER_STATUS_ROOM_TOO_SMALL` when it is longer than `room_bytes` (it stays). 65,507 bytes
 * are room for any.
 *
 * # Safety
 *
 * `network` is null, or of `lagometer_network_new`, not freed, and used by no other
 * thread now; `room` is null or can be written for `room_bytes`.
 */
int64_t lagometer_network_receive(struct lagometer_network *network,
                                  uint32_t direction_number,
                                  uint64_t now_ns,
                                  uint8_t *room,
                                  size_t room_bytes);

/**
 * Writes to `at_ns` when the next datagram of any direction arrives: until then there
 * is nothing to receive. `LAGOMETER_STATUS_NOTHING` when none is on its way.
 *
 * # Safety
 *
 * `network` is null, or of `lagometer_network_new`, not freed, and used by no other
 * thread now; `at_ns` is null or can be written.
 */
lagometer_status lagometer_network_next_arrival(struct lagometer_network *network,
                                                uint64_t *at_ns);

/**
 * How many datagrams are on their way in that direction, copies included; or a
 * negative status.
 *
 * # Safety
 *
 * `network` is null, or of `lagometer_network_new`, not freed, and used by no other
 * thread now.
 */
int64_t lagometer_network_waiting(struct lagometer_network *network,
                                  uint32_t direction_number);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LAGOMETER_H */

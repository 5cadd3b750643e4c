/* SPDX-License-Identifier: GPL-2.0 */
/* The schedule of loadgen/play, and the sockets of its connections. */
#ifndef _PLAY_H
#define _PLAY_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define MAX_CLASSES 16
#define CC_NAME 16			/* TCP_CA_NAME_MAX, which no UAPI header has */
#define NONE UINT32_MAX

/**
 * struct message - a message of the schedule
 * @at: time at which it is due, ns
 * @bytes: its size
 * @connection: index of its connection
 * @next: next message of the connection, or NONE
 * @answer: message that begins when this one is complete, or NONE
 * @began: time at which it (an answer: its request) was written, 0 before
 * @done: time at which the receiver had all of it, 0 before
 * @rtt: the sender's smoothed RTT, us, read before the next message or at the end
 * @rttvar: its variation, us
 */
struct message {
	uint64_t at, bytes, began, done;
	uint32_t connection, next, answer;
	uint32_t rtt, rttvar;
};

/**
 * struct connection - one direction of a connection
 * @tx: socket of the sender
 * @rx: socket of the receiver
 * @src: sending host
 * @dst: receiving host
 * @port: the sender's
 * @class: index of its class
 * @reversed: connection whose other direction this is, or NONE
 * @first: oldest incomplete message, or NONE
 * @last: newest message, or NONE
 * @to_send: bytes not yet written
 * @to_read: bytes of @first that have not arrived
 * @unread: bytes that have arrived and are not yet read
 * @blocked: waits for room in the send buffer
 */
struct connection {
	int tx, rx;
	unsigned int src, dst, port, class;
	uint32_t reversed;
	uint32_t first, last;
	uint64_t to_send, to_read;
	int unread;
	bool blocked;
};

/**
 * struct class - connections with a common name, congestion control and TOS byte
 * @name: its name in the report
 * @cc: congestion control of both ends; "": the namespace's default
 * @tos: TOS byte of the clients' packets
 * @server: first class with the same congestion control
 * @ends: number of sockets that still have that congestion control at the end
 * @bytes: bytes received in the measured time
 * @retrans: segments that its senders retransmitted
 * @sent: bytes of data that its senders transmitted, retransmissions included
 * @resent: bytes of data that its senders retransmitted
 */
struct class {
	char name[32], cc[CC_NAME];
	unsigned int server;
	int tos;
	uint64_t ends, bytes, retrans, sent, resent;
};

/**
 * struct host - a namespace
 * @address: address to which its peers connect
 * @name: the same address, as GREENLANE_SENDERS takes it
 * @ns: descriptor of the namespace
 * @listeners: by class::server, because an accepted socket inherits the listener's
 *	congestion control
 */
struct host {
	char address[64];
	struct in6_addr name;
	int ns, listeners[MAX_CLASSES];
};

struct option_value {
	int level, name, value;
};

/* schedule.c: the schedule, as play.c describes it. */
extern struct class classes[MAX_CLASSES];
extern struct host *hosts;
extern struct connection *connections;
extern struct message *messages;
extern uint32_t n_classes, n_hosts, n_connections, n_messages;
extern uint32_t n_timed;		/* messages that are not answers */
/* This process plays only this host, on a machine of its own, or NONE. */
extern uint32_t only;

/* Read a file; @cc is the congestion control of classes without one. */
void read_schedule(const char *path, const char *cc);
/* Does this process have the sender, or the receiver, of a connection? */
bool sends(const struct connection *c);
bool receives(const struct connection *c);
/* Is a message from a host of this process, or to one? */
bool is_sent(const struct message *m);
bool is_received(const struct message *m);
bool is_endless(const struct message *m);
/* An IPv6 address, or an IPv4-mapped one. */
struct in6_addr name_of(const struct sockaddr_storage *ss);

/* ends.c: open all connections.  @options are set on each sender's socket, @ack_tos is the TOS byte
 * of the receivers' packets.
 */
void open_connections(const struct option_value *options, unsigned int n_options, int ack_tos);
void set_int(int fd, int level, int name, int value);

#endif /* _PLAY_H */

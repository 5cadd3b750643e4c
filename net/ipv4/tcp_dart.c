// SPDX-License-Identifier: GPL-2.0
/* Dart: divide and specialize
 *
 *	Jiachen Xue, Muhammad Usama Chaudhry, Balajee Vamanan, T. N. Vijaykumar,
 *	Mithuna Thottethodi: "Dart: Divide and Specialize for Fast Response to
 *	Congestion in RDMA-Based Datacenter Networks", IEEE/ACM ToN 2020
 *
 * Most congestion is at the receiver's own port, where the fair share is known: the line
 * rate divided by the number of senders.  So the receiver counts its senders, and advertises
 * the share with each ACK, as a rate, because its line rate is not always the sender's:
 *
 *	senders 1, 2               receiver's port           receiver
 *	line rate    d d d d d ---------->                   messages of 1 and 2:
 *	line rate    d d d d d ---------->   -------------->      n = 2
 *	                                                         |
 *	both: line rate / 2  <----------------------------- ACK, line rate / 2
 *
 * That is DASR, direct apportioning of sending rates.  It takes one round trip, where
 * iterative control takes fifty.  Congestion elsewhere in the network is left to DCQCN,
 * the congestion control underneath; and switches can deflect short messages around it
 * (sch_iofd).  The receiver decides which of the two responds (Figure 5):
 *
 *	CE marks   receiver's link   state                  ACKs carry
 *	no         -                 no congestion          line rate / n
 *	yes        busy              receiver congestion    slightly less than that, no ECE
 *	yes        not busy          other congestion       line rate (n = 1) and ECE, for DCQCN
 *
 * A message begins when the application writes data while TCP has no data to send and no data
 * in flight, and ends with the last byte that the application has written; with
 * GREENLANE_MESSAGE the application sets the end.  The last packet of a message has a codepoint
 * of its own.
 *
 * dart_senders.c keeps the set of senders, dart_lookahead.c transfers announcements of senders.
 * Documentation/dart.rst lists the differences from the paper and their reasons.
 */
#include <linux/module.h>
#include <linux/sysctl.h>
#include <net/gl_rate.h>
#include <net/greenlane.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/tcp.h>

#include <net/gl_compat.h>
#include "dart_lookahead.h"
#include "dart_senders.h"
#include "tcp_dcqcn.h"

/* Advertise the share at least this often, even if it is unchanged and there is no pure
 * ACK to carry it.  A share that was not refreshed for DART_EXPIRY has expired.
 */
#define DART_REFRESH		(HZ / 40 ?: 1)
#define DART_EXPIRY		(HZ / 20 ?: 2)

/* Minimum share of a sender, in kB/s, even if the peer advertises less: one full frame
 * in DART_EXPIRY, whose ACK corrects a forged share.  Below 1 Gbit/s that would be too much for
 * the shares of many senders, so there the minimum is 1/4096 of the sender's line rate.
 */
#define DART_LEAST		31
#define DART_SHARES		4096

/* An iSCSI host or a disk array may have a larger weight than others, within a limit. */
#define DART_WEIGHT_MAX		1000

/**
 * struct dart - the state of a connection, both as a receiver and as a sender
 * @gs: greenlane's part
 * @in: receiver: the message that the peer is sending
 * @in_next: receiver: TCP's rcv_nxt when it was last read; the bytes up to it are counted
 * @in_end: receiver: sequence number behind the message's last byte, if @ending: the end that
 *	arrived last
 * @in_last: receiver: sequence number behind the last byte of the latest message whose end has
 *	arrived
 * @advertised: receiver: the word that was advertised last
 * @advertised_at: receiver: when @advertised was sent, jiffies
 * @begun: receiver: messages that the peer has begun
 * @senders: receiver: senders that the application has named, the peer among them; or NULL
 * @named: receiver: senders that the peer has named; or NULL
 * @weight: receiver: weight of the peer's share
 * @ending: receiver: the last packet of the message has arrived
 * @open: sender: the application has begun a message and not ended it (GREENLANE_MESSAGE)
 * @began: sender: a message has begun, and TCP has not sent any of it yet
 * @within: sender: TCP has sent part of the message that @open stands for
 * @unended: sender: the last packet was sent without the codepoint of an end
 * @cosenders: sender: senders that the application has named, itself among them; or NULL
 * @share: sender: our share of the peer's line rate, kB/s; 0 if the peer has not advertised
 *	one, or it has expired
 * @share_at: sender: when the share arrived, jiffies
 * @until: sender: the data before this sequence number belongs to the current message
 * @begin: sender: first sequence number of a short message
 * @end: sender: sequence number behind its last byte; @begin if the message is not short
 *
 * The socket lock protects all fields.
 */
struct dart {
	struct gl_sock		gs;
	/* as the receiver */
	struct dart_message	in;
	u32			in_next;
	u32			in_end;
	u32			in_last;
	u32			advertised;
	u32			advertised_at;
	u32			begun;
	struct dart_group	*senders;
	struct dart_group	*named;
	u16			weight;
	u8			ending:1,
	/* as the sender */
				open:1,
				began:1,
				within:1,
				unended:1;
	struct dart_group	*cosenders;
	u32			share;
	u32			share_at;
	u32			until;
	u32			begin;
	u32			end;
};

/**
 * struct dart_net - a network namespace's senders, and its settings
 * @senders: the hosts that are sending to this namespace
 * @tenancy: net.ipv4.dart_tenant: enum dart_tenancy, the criterion of a tenant; shares are
 *	divided among the senders of a tenant
 * @shares: net.ipv4.dart_shares: advertise shares; 0 leaves all congestion to DCQCN
 * @tokens: net.ipv4.dart_tokens: how often switches may deflect a packet of a short
 *	message; 0 for never
 * @size: net.ipv4.dart_short: size of the longest short message, bytes
 * @lookahead: net.ipv4.dart_lookahead: how often per second a tenant's senders may be
 *	named; 0 for never
 * @trust: net.ipv4.dart_trust: count senders that a peer, or any application, has named
 * @sysctl: the registered table
 */
struct dart_net {
	struct dart_senders	senders;
	unsigned int		tenancy;
	unsigned int		shares;
	unsigned int		tokens;
	unsigned int		size;
	unsigned int		lookahead;
	unsigned int		trust;
	struct ctl_table_header	*sysctl;
};

enum dart_counter {
	DART_MESSAGESENT = 1,
	DART_SHORTSENT,
	DART_MESSAGEBEGUN,
	DART_MESSAGEENDED,
	DART_SENDERDEAD,
	DART_SENDERSNAMED,
	DART_NAMINGLIMITED,
	DART_NAMINGREFUSED,
	DART_SHARESENT,
	DART_SHARERECEIVED,
	DART_MARKSUPPRESSED,
	DART_MARKPASSED,
	DART_COUNTERS,
};

static const char * const dart_counter_name[DART_COUNTERS] = {
	[DART_MESSAGESENT]	= "MessageSent",
	[DART_SHORTSENT]	= "ShortSent",
	[DART_MESSAGEBEGUN]	= "MessageBegun",
	[DART_MESSAGEENDED]	= "MessageEnded",
	[DART_SENDERDEAD]	= "SenderDead",
	[DART_SENDERSNAMED]	= "SendersNamed",
	[DART_NAMINGLIMITED]	= "NamingLimited",
	[DART_NAMINGREFUSED]	= "NamingRefused",
	[DART_SHARESENT]	= "ShareSent",
	[DART_SHARERECEIVED]	= "ShareReceived",
	[DART_MARKSUPPRESSED]	= "MarkSuppressed",
	[DART_MARKPASSED]	= "MarkPassed",
};

/* The kinds of packets (§III, §IV). */
enum dart_kind {
	DART_CONTROL,		/* packets without data, also SYN and SYN-ACK */
	DART_SHARE,		/* the same, with a share or names for the peer */
	DART_MESSAGE,		/* data */
	DART_MESSAGE_END,	/* the last packet of a message */
	/* the last packet of a short message, with no deflections left; set by switches */
	DART_SPENT_END,
	DART_SHORT,		/* 16 rows: data of a short message, see gl_deflect.h */
	DART_KINDS = DART_SHORT + 16,
};

/* One row for each value of the codepoint's low bits; bit 3 marks the end of a message. */
#define DART_SHORT_ROW(bits)							\
	[DART_SHORT + (bits)] = {						\
		.protocol	= &dart_protocol,				\
		.codepoint	= GL_CP_SHORT + (bits),				\
		.flags		= (bits) & (GL_DEFLECT_END >> GL_DEFLECT_SHIFT) ?	\
				  GL_KIND_PROMPT | GL_KIND_ENDS : 0,		\
		.sent		= DART_SHORTSENT,				\
	}

static struct gl_protocol dart_protocol;

static const struct gl_kind dart_kinds[DART_KINDS] = {
	[DART_CONTROL] = {
		.protocol	= &dart_protocol,
		.codepoint	= GL_CP_PROTECTED,
	},
	[DART_SHARE] = {
		.protocol	= &dart_protocol,
		.codepoint	= GL_CP_PROTECTED,
		.code		= GL_CODE_SHARE,
		.words		= 1,
		.flags		= GL_KIND_TCPS,
	},
	[DART_MESSAGE] = {
		.protocol	= &dart_protocol,
		.codepoint	= GL_CP_MESSAGE,
		.sent		= DART_MESSAGESENT,
	},
	[DART_MESSAGE_END] = {
		.protocol	= &dart_protocol,
		.codepoint	= GL_CP_MESSAGE_END,
		.flags		= GL_KIND_PROMPT | GL_KIND_ENDS,
		.before		= &dart_kinds[DART_MESSAGE],
		.sent		= DART_MESSAGESENT,
	},
	[DART_SPENT_END] = {
		.protocol	= &dart_protocol,
		.codepoint	= GL_CP_SPENT_END,
		.flags		= GL_KIND_PROMPT | GL_KIND_ENDS,
	},
	DART_SHORT_ROW(0), DART_SHORT_ROW(1), DART_SHORT_ROW(2), DART_SHORT_ROW(3),
	DART_SHORT_ROW(4), DART_SHORT_ROW(5), DART_SHORT_ROW(6), DART_SHORT_ROW(7),
	DART_SHORT_ROW(8), DART_SHORT_ROW(9), DART_SHORT_ROW(10), DART_SHORT_ROW(11),
	DART_SHORT_ROW(12), DART_SHORT_ROW(13), DART_SHORT_ROW(14), DART_SHORT_ROW(15),
};

static struct gl_protocol dart_protocol __read_mostly = {
	.hello		= GL_CODE_SHARE,
	.told_as	= GL_CP_MESSAGE,
	.kind		= dart_kinds,
	.kinds		= DART_KINDS,
	.control	= &dart_kinds[DART_CONTROL],
	.counter	= dart_counter_name,
	.counters	= DART_COUNTERS,
};

static void dart_count(const struct sock *sk, enum dart_counter counter, u64 n)
{
	gl_count(sock_net(sk), &dart_protocol, counter, n);
}

static unsigned int dart_net_id __read_mostly;
static const struct tcp_congestion_ops *dart_base __read_mostly;

static struct dart_net *dart_net(const struct sock *sk)
{
	return net_generic(sock_net(sk), dart_net_id);
}

static struct dart *dart_of(struct gl_sock *gs)
{
	return container_of(gs, struct dart, gs);
}

/* --- the receiver: its senders (§III-B) --------------------------------------- */

static void dart_in_ends(struct sock *sk, struct dart *d)
{
	if (!d->in.host)
		return;
	dart_message_ends(&dart_net(sk)->senders, &d->in);
	dart_count(sk, DART_MESSAGEENDED, 1);
}

/* May the named senders count?  Each of them takes a share from the hosts that send, so by default
 * only two parties may name senders: the application that receives, in a tenant of its own, and an
 * administrator.  A peer may not, since it is not part of the tenant.
 */
static bool dart_may_name(const struct dart_net *dn, const struct dart *d,
			  const struct dart_group *group)
{
	if (READ_ONCE(dn->trust))
		return true;
	return group == d->senders && (group->may || d->in.host->tenant->id != DART_COMMON);
}

/* Count the named senders from now on: the receiver "treats any flow as if it begins when the
 * look-ahead notification first arrives" (§III-B).
 */
static void dart_in_name(struct sock *sk, struct dart *d, const struct dart_group *group)
{
	struct dart_net *dn = dart_net(sk);

	if (!group || !group->known || !group->n || !d->in.host)
		return;
	if (!dart_may_name(dn, d, group))
		dart_count(sk, DART_NAMINGREFUSED, 1);
	else if (dart_senders_name(&dn->senders, d->in.host->tenant, group, ktime_get_ns(),
				   READ_ONCE(dn->lookahead)))
		dart_count(sk, DART_SENDERSNAMED, 1);
	else
		dart_count(sk, DART_NAMINGLIMITED, 1);
}

static void dart_in_begins(struct sock *sk, struct dart *d)
{
	struct dart_net *dn = dart_net(sk);

	dart_message_begins(&dn->senders, &d->in, sk, READ_ONCE(dn->tenancy), d->weight);
	d->begun++;
	dart_count(sk, DART_MESSAGEBEGUN, 1);
	dart_in_name(sk, d, d->senders);
	dart_in_name(sk, d, d->named);
}

/* The peer's message ends at @end.  Settle it when all data before @end has arrived.  An end that
 * was lost and retransmitted may arrive after a later message's end: keep the later one in in_last.
 */
static void dart_in_ending(struct sock *sk, struct dart *d, u32 end)
{
	if (!d->ending || after(end, d->in_last))
		d->in_last = end;
	d->ending = 1;
	d->in_end = end;
	gl_kick(sk, &d->gs);
}

/* End the message if all of it has arrived.  Data beyond an end (a FIN aside) belongs to a later
 * message, so this end was an old retransmission.
 */
static void dart_in_settle(struct sock *sk, struct dart *d)
{
	u32 next = tcp_sk(sk)->rcv_nxt, fin = sock_flag(sk, SOCK_DONE);

	if (!d->ending || after(d->in_end, next))
		return;
	if (next - d->in_end <= fin || next - d->in_last <= fin)
		dart_in_ends(sk, d);
	/* Continue to wait for the later end.  If it is forged, the next end replaces it. */
	d->ending = after(d->in_last, next);
	d->in_end = d->in_last;
}

/* Number of bytes on the link that @payload bytes of data, arrived in order, have taken. */
static u32 dart_wire_bytes(const struct sock *sk, u32 payload)
{
	u32 mss = max_t(u32, inet_csk(sk)->icsk_ack.rcv_mss, 1);

	return payload + DIV_ROUND_UP(payload, mss) *
			 (tcp_sk(sk)->tcp_header_len + LINK_SPEED_FRAME +
			  inet_csk(sk)->icsk_af_ops->net_header_len);
}

/* --- the receiver: Dart or DCQCN responds (§III-C, Figure 5) -------------------- */

static enum dart_state dart_state(struct sock *sk, const struct dart *d, u64 now)
{
	struct dart_net *dn = dart_net(sk);
	struct dart_senders *s = &dn->senders;

	if (!READ_ONCE(dn->shares))
		return DART_OTHER_CONGESTION;
	if (!d->in.host)
		return DART_NO_CONGESTION;
	return dart_tenant_state(s, d->in.host->tenant, now, dcqcn_line(sk));
}

/* Our line rate divided by @divisor, as a share in kB/s: never 0, which is no share. */
static u32 dart_share(const struct sock *sk, u32 divisor)
{
	return clamp_t(u64, div_u64((u64)dcqcn_line(sk) * DART_ONE, divisor), 1, DART_WORD_SHARE);
}

/* The word that an ACK sent now advertises. */
static u32 dart_word(struct sock *sk, struct dart *d, enum dart_state state, u64 now)
{
	u32 word = d->named && d->named->known ? DART_WORD_KNOWN : 0;
	u32 divisor;

	if (!d->in.host || state == DART_OTHER_CONGESTION)
		return word | dart_share(sk, DART_ONE);
	dart_message_expire(&dart_net(sk)->senders, &d->in, now);
	divisor = dart_message_divisor(&d->in);
	if (state == DART_RECEIVER_CONGESTION)
		divisor = dart_tenant_drains(d->in.host->tenant, divisor, now);
	return word | dart_share(sk, divisor);
}

/* Data has arrived in order: @bytes on the link. */
static void dart_brought(struct sock *sk, struct dart *d, u32 bytes, u64 now)
{
	struct dart_senders *s = &dart_net(sk)->senders;
	u32 line = dcqcn_line(sk);

	dart_meter_add(s, now, bytes, line);
	if (!d->in.host)
		return;
	if (now >= READ_ONCE(d->in.host->tenant->look_at))
		dart_use_look(s, d->in.host->tenant, now, line, tcp_sk(sk)->srtt_us >> 3);
	dart_use_add(s, &d->in, bytes);
}

/* A packet with data arrived; TCP has already advanced rcv_nxt. */
static void dart_received(struct sock *sk, struct dart *d, bool ce, u64 now)
{
	struct dart_senders *s = &dart_net(sk)->senders;
	u32 next = tcp_sk(sk)->rcv_nxt;
	u32 bytes = next - d->in_next;
	u32 dead = dart_senders_look(s);

	if (dead)
		dart_count(sk, DART_SENDERDEAD, dead);
	d->in_next = next;
	if (d->in.host && !dart_message_seen(&d->in))
		dart_message_ends(s, &d->in);
	if (!d->in.host)
		dart_in_begins(sk, d);
	if (bytes)
		dart_brought(sk, d, dart_wire_bytes(sk, bytes), now);
	if (ce && d->in.host)
		dart_tenant_marked(s, d->in.host->tenant, now, dcqcn_line(sk));
	/* If the share has changed, advertise it with the ACK of this packet, not a later one. */
	if (dart_word(sk, d, dart_state(sk, d, now), now) != d->advertised)
		inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
}

/* In receiver congestion, do not report marks: the share already limits the sender. */
static void dart_suppress(struct sock *sk, struct tcphdr *th)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!th->ece || !gl_tcp_ecn_rfc3168(tp))
		return;
	th->ece = 0;
	tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
	dart_count(sk, DART_MARKSUPPRESSED, 1);
}

static bool dart_must_advertise(const struct dart *d, u32 word)
{
	return word != d->advertised || (u32)jiffies - d->advertised_at > DART_REFRESH;
}

static void dart_advertised(struct sock *sk, struct dart *d, u32 word)
{
	d->advertised = word;
	d->advertised_at = jiffies;
	dart_count(sk, DART_SHARESENT, 1);
}

static const struct gl_kind *dart_on_ack(struct sock *sk, struct gl_sock *gs, struct tcphdr *th,
					 struct gl_seg *seg, int room)
{
	struct dart *d = dart_of(gs);
	enum dart_state state;
	u32 next;
	u64 now;

	/* A peer that has sent no message needs no share.  Do not even read the clock, as this
	 * runs for each packet of data.
	 */
	if (!d->begun) {
		dart_in_settle(sk, d);
		return NULL;
	}
	now = ktime_get_ns();
	state = dart_state(sk, d, now);
	if (state == DART_RECEIVER_CONGESTION)
		dart_suppress(sk, th);
	else if (th->ece)
		dart_count(sk, DART_MARKPASSED, 1);
	dart_in_settle(sk, d);
	next = dart_word(sk, d, state, now);
	if (room < 1) {
		/* This packet has data, or no room for the word: the kick sends the word. */
		if (dart_must_advertise(d, next))
			gl_kick(sk, gs);
		return NULL;
	}
	seg->word[0] = next;
	dart_advertised(sk, d, next);
	return &dart_kinds[DART_SHARE];
}

/* --- the sender: its share (§III-A) --------------------------------------------- */

/* Has the current message data that TCP has not sent, or that the application may write later?
 * A flight that is empty does not end a message: with n senders each sends a packet every n
 * transmission times, which may be longer than a round trip.
 */
static bool dart_goes_on(const struct sock *sk, const struct dart *d)
{
	if (before(tcp_sk(sk)->snd_nxt, d->until))
		return true;
	/* The application may pause in a message.  If it pauses for long, its share expires. */
	return d->open && d->within && (u32)jiffies - d->share_at <= DART_EXPIRY;
}

/* The peer advertises our share.  A share above our own line rate is no error: DCQCN never sends
 * faster than the line rate.
 */
static void dart_shared(struct sock *sk, struct dart *d, u32 word)
{
	u32 share = word & DART_WORD_SHARE;

	if (!share) {
		gl_inc_stats(sock_net(sk), GL_MIB_INVALID);
		return;
	}
	dart_count(sk, DART_SHARERECEIVED, 1);
	if (d->cosenders && (word & DART_WORD_KNOWN))
		d->cosenders->known = true;
	d->share = share;
	d->share_at = jiffies;
	if (tcp_sk(sk)->packets_out || dart_goes_on(sk, d))
		dcqcn_set_cap(sk, max(share, min(dcqcn_line(sk) / DART_SHARES + 1, DART_LEAST)));
}

/* An ACK arrived.  A share that was not refreshed for DART_EXPIRY has expired. */
static void dart_acked(struct sock *sk, struct dart *d)
{
	if (d->share && (u32)jiffies - d->share_at > DART_EXPIRY) {
		d->share = 0;
		dcqcn_set_cap(sk, U32_MAX);
	}
}

static void dart_in_ack_event(struct sock *sk, u32 flags)
{
	struct gl_sock *gs = gl_sock_locked(sk);

	dart_base->in_ack_event(sk, flags);
	if (gs)
		dart_acked(sk, dart_of(gs));
}

/* --- the sender: messages -------------------------------------------------------- */

/* Announce the other senders before the message, when the receiver needs to know. */
static void dart_announce_names(struct sock *sk, struct dart *d)
{
	u32 word[GL_WORDS_MAX], first;

	/* Send an empty list, too: it revokes the previous list. */
	first = 0;
	do {
		gl_send_words(sk, &d->gs, &dart_kinds[DART_SHARE], word,
			      dart_names_pack(d->cosenders, first, word));
		first += DART_NAMES;
	} while (first < d->cosenders->n);
}

/* The next packet begins a message, which starts at line rate. */
static void dart_begins(struct sock *sk, struct dart *d)
{
	const struct dart_net *dn = dart_net(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 size = gl_data_end(sk) - tp->snd_nxt;
	/* TCP sets PSH at the end of a write.  Until then the message's length is unknown. */
	bool whole = TCP_SKB_CB(tcp_write_queue_tail(sk))->tcp_flags & TCPHDR_PSH;

	d->begin = tp->snd_nxt;
	d->end = tp->snd_nxt;
	/* A transport built around this one may need packets in order: do not deflect them. */
	if (whole && READ_ONCE(dn->tokens) && size <= READ_ONCE(dn->size) &&
	    !d->gs.transport->inner)
		d->end += size;
	dcqcn_set_cap(sk, U32_MAX);
	/* TCP calls this more often than it sends: announce once per message. */
	if (!d->began && d->cosenders && !d->cosenders->known)
		dart_announce_names(sk, d);
	d->began = 1;
}

static bool dart_is_short(const struct dart *d, u32 seq)
{
	return !before(seq, d->begin) && before(seq, d->end);
}

static const struct gl_kind *dart_short_kind(u8 dscp)
{
	return &dart_kinds[DART_SHORT + gl_short_codepoint(dscp) - GL_CP_SHORT];
}

/* The kind of a data packet.  In a short message each packet's DSCP signals whether it is the first
 * or the last (§IV-A); in a long message only the last packet has a codepoint of its own.
 */
static const struct gl_kind *dart_kind(struct sock *sk, const struct dart *d,
				       const struct gl_seg *seg)
{
	bool again = before(seg->seq, tcp_sk(sk)->snd_nxt);
	bool last;

	if (dart_is_short(d, seg->seq)) {
		/* A retransmission is never the first packet that a switch sees. */
		bool first = seg->seq == d->begin && !again;

		last = !d->open && !before(seg->end_seq, d->end);
		return dart_short_kind(gl_deflect_dscp(READ_ONCE(dart_net(sk)->tokens) ?: 1,
						       first, last));
	}
	last = !d->open && !seg->more && seg->end_seq == gl_data_end(sk);
	return &dart_kinds[last ? DART_MESSAGE_END : DART_MESSAGE];
}

static const struct gl_kind *dart_on_xmit(struct sock *sk, struct gl_sock *gs,
					  const struct gl_seg *seg)
{
	struct dart *d = dart_of(gs);
	const struct gl_kind *kind;

	/* TCP has chosen the size of this packet.  Undo the limit of dart_min_tso_segs(), so
	 * that later writes use large GSO packets again.
	 */
	gl_gso_default(sk);
	d->began = 0;
	d->within = d->open;
	/* No sequence number 4 GB later is one of a short message that has arrived. */
	if (!before(tcp_sk(sk)->snd_una, d->end))
		d->begin = d->end;
	kind = dart_kind(sk, d, seg);
	if (kind->before)
		d->unended = 1;
	return kind;
}

static void dart_on_last(struct sock *sk, struct gl_sock *gs, const struct gl_kind *kind,
			 u32 end_seq)
{
	dart_of(gs)->unended = 0;
}

/* There is data to send.  TCP calls this for each write, even if pacing delays the data, so that
 * data that the application writes during a message belongs to that message.
 */
static void dart_before_xmit(struct sock *sk, struct dart *d)
{
	if (d->began || (!tcp_sk(sk)->packets_out && !dart_goes_on(sk, d)))
		dart_begins(sk, d);
	d->until = gl_data_end(sk);
}

/* TCP is about to send.  Send a short message as single packets rather than GSO: each may
 * take another path.
 */
static u32 dart_min_tso_segs(struct sock *sk)
{
	struct gl_sock *gs = gl_sock_locked(sk);
	u32 segs = dart_base->min_tso_segs(sk);

	if (gs && gl_marking(gs)) {
		struct dart *d = dart_of(gs);

		if (tcp_send_head(sk))
			dart_before_xmit(sk, d);
		if (dart_is_short(d, tcp_sk(sk)->snd_nxt))
			sk->sk_gso_max_segs = 1;
	}
	return segs;
}

static void dart_announce_end(struct sock *sk, struct dart *d)
{
	u32 word = DART_WORD_END | DART_WORD_ALONE;

	d->unended = 0;
	gl_send_words(sk, &d->gs, &dart_kinds[DART_SHARE], &word, 1);
}

/* The peer announces the other senders. */
static void dart_names_received(struct sock *sk, struct dart *d, const struct gl_seg *seg)
{
	if (!d->named)
		d->named = kzalloc(sizeof(*d->named), GFP_ATOMIC | __GFP_NOWARN);
	if (!d->named)
		gl_inc_stats(sock_net(sk), GL_MIB_NOMEMORY);
	else if (!dart_names_unpack(d->named, seg->word, seg->words))
		gl_inc_stats(sock_net(sk), GL_MIB_INVALID);
}

/* --- a transport ------------------------------------------------------------------ */

static enum gl_verdict dart_on_packet(struct sock *sk, struct gl_sock *gs,
				      const struct gl_kind *kind, const struct gl_seg *seg)
{
	struct dart *d = dart_of(gs);

	if (!gl_marking(gs))
		return GL_PASS;
	if (kind->flags & GL_KIND_ENDS) {
		dart_in_ending(sk, d, seg->end_seq);
		inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
	} else if (kind == &dart_kinds[DART_SHARE]) {
		if (seg->word[0] & DART_WORD_NAMES)
			dart_names_received(sk, d, seg);
		else if (seg->word[0] & DART_WORD_END)
			dart_in_ending(sk, d, seg->seq);
		else
			dart_shared(sk, d, seg->word[0]);
		if (seg->word[0] & DART_WORD_ALONE)
			return GL_CONSUME;
	}
	return GL_PASS;
}

static void dart_on_kick(struct sock *sk, struct gl_sock *gs)
{
	struct dart *d = dart_of(gs);
	u64 now = ktime_get_ns();
	u32 word;

	dart_in_settle(sk, d);
	if (!gl_marking(gs))
		return;
	if (d->unended && !tcp_send_head(sk))
		dart_announce_end(sk, d);
	if (!d->begun)
		return;
	word = dart_word(sk, d, dart_state(sk, d, now), now);
	if (dart_must_advertise(d, word)) {
		dart_advertised(sk, d, word);
		word |= DART_WORD_ALONE;
		gl_send_words(sk, gs, &dart_kinds[DART_SHARE], &word, 1);
	}
}

static void dart_on_switch(struct sock *sk, struct gl_sock *gs, bool on)
{
	struct dart *d = dart_of(gs);

	if (on) {
		d->in_next = tcp_sk(sk)->rcv_nxt;
		d->until = tcp_sk(sk)->snd_nxt;
		return;
	}
	d->ending = 0;
	d->unended = 0;
	dart_in_ends(sk, d);
	dcqcn_set_cap(sk, U32_MAX);
}

static void dart_on_info(const struct gl_sock *gs, struct greenlane_info *info)
{
	const struct dart *d = container_of(gs, struct dart, gs);
	u64 line = (u64)dcqcn_line(gs->sk) * DART_ONE;

	info->messages = d->begun;
	info->senders = d->in.host ? READ_ONCE(d->in.host->tenant->n) : 0;
	if (d->share)
		info->divisor = clamp_t(u64, DIV_ROUND_CLOSEST_ULL(line, d->share), DART_ONE,
					U32_MAX);
}

static void dart_cwnd_event(struct sock *sk, enum tcp_ca_event ev)
{
	struct gl_sock *gs = gl_sock_locked(sk);

	if ((ev == CA_EVENT_ECN_IS_CE || ev == CA_EVENT_ECN_NO_CE) && gs && gl_marking(gs)) {
		/* TCP has read the clock for this packet already. */
		u64 now = tcp_sk(sk)->tcp_clock_cache;
		struct dart *d = dart_of(gs);

		dart_received(sk, d, ev == CA_EVENT_ECN_IS_CE, now);
		/* A suppressed mark needs no immediate ACK. */
		if (ev == CA_EVENT_ECN_IS_CE &&
		    dart_state(sk, d, now) == DART_RECEIVER_CONGESTION)
			return;
	}
	dart_base->cwnd_event(sk, ev);
}

/* --- options ---------------------------------------------------------------------- */

static int dart_set_message(struct sock *sk, struct gl_sock *gs, int open)
{
	struct dart *d = dart_of(gs);

	if (d->open && !open && gl_marking(gs) && !tcp_send_head(sk))
		dart_announce_end(sk, d);
	if (d->open != open)
		d->within = 0;
	d->open = open;
	return 0;
}

static int dart_get_message(const struct sock *sk, struct gl_sock *gs)
{
	return dart_of(gs)->open;
}

static bool dart_is_admin(const struct sock *sk)
{
	return ns_capable(sock_net(sk)->user_ns, CAP_NET_ADMIN);
}

/* A weight takes from the shares of the tenant's other senders. */
static int dart_set_weight(struct sock *sk, struct gl_sock *gs, int weight)
{
	if (!dart_is_admin(sk))
		return -EPERM;
	if (!weight)
		return -EINVAL;
	dart_of(gs)->weight = weight;
	return 0;
}

static int dart_get_weight(const struct sock *sk, struct gl_sock *gs)
{
	return dart_of(gs)->weight;
}

/* Replace a list of senders.  The new list gets another number, as packets with parts of the old
 * list may still be in flight to the peer.
 */
static int dart_name(struct dart_group **at, const struct in6_addr *senders, unsigned int n,
		     bool known)
{
	struct dart_group *group = *at ?: kzalloc(sizeof(*group), GFP_KERNEL);
	unsigned int i;

	if (!group)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		group->id[i] = dart_address_id(&senders[i]);
	group->n = n;
	group->list++;
	group->known = known;
	*at = group;
	return 0;
}

static int dart_set_senders(struct sock *sk, struct gl_sock *gs, const void *senders,
			    unsigned int n)
{
	const struct dart_net *dn = dart_net(sk);
	/* In its own tenant a socket does not use the capability, and it is not audited. */
	bool common = dart_is_common(sk, READ_ONCE(dn->tenancy));
	bool may = n && common && dart_is_admin(sk);
	int err;

	/* The tenant or dart_trust may change, so dart_may_name() decides again when they count. */
	if (n && common && !may && !READ_ONCE(dn->trust))
		return -EPERM;
	err = dart_name(&dart_of(gs)->senders, senders, n, true);
	if (!err)
		dart_of(gs)->senders->may = may;
	return err;
}

static int dart_get_senders(const struct sock *sk, struct gl_sock *gs)
{
	const struct dart_group *senders = dart_of(gs)->senders;

	return senders ? senders->n : 0;
}

static int dart_set_cosenders(struct sock *sk, struct gl_sock *gs, const void *senders,
			      unsigned int n)
{
	return dart_name(&dart_of(gs)->cosenders, senders, n, false);
}

static int dart_get_cosenders(const struct sock *sk, struct gl_sock *gs)
{
	const struct dart_group *cosenders = dart_of(gs)->cosenders;

	return cosenders ? cosenders->n : 0;
}

static const struct gl_sockopt dart_sockopt[] = {
	{ GREENLANE_MESSAGE, 1, .set = dart_set_message, .get = dart_get_message },
	{ GREENLANE_WEIGHT, DART_WEIGHT_MAX, .set = dart_set_weight, .get = dart_get_weight },
	{ GREENLANE_SENDERS, GREENLANE_SENDERS_MAX, .unit = sizeof(struct in6_addr),
	  .set_list = dart_set_senders, .get = dart_get_senders },
	{ GREENLANE_COSENDERS, GREENLANE_SENDERS_MAX, .unit = sizeof(struct in6_addr),
	  .set_list = dart_set_cosenders, .get = dart_get_cosenders },
	{}
};

static void dart_on_free(struct gl_sock *gs)
{
	struct dart *d = dart_of(gs);

	kfree(d->senders);
	kfree(d->named);
	kfree(d->cosenders);
}

static struct tcp_congestion_ops dart_reno __read_mostly = GL_RENO("dart-reno");

static void dart_init(struct sock *sk)
{
	const struct tcp_congestion_ops *ours = inet_csk(sk)->icsk_ca_ops;
	struct gl_sock *gs;

	dart_base->init(sk);
	/* Without ECN, dcqcn has changed this connection to its own reno, which belongs to
	 * dcqcn's module.  TCP will release a reference on this one: use our reno.
	 */
	if (inet_csk(sk)->icsk_ca_ops != ours) {
		gl_fall_back(sk, &dart_reno);
		return;
	}
	gs = gl_attach(sk);
	if (gs) {
		struct dart *d = dart_of(gs);

		d->weight = 1;
		d->in_next = tcp_sk(sk)->rcv_nxt;
		d->until = tcp_sk(sk)->snd_nxt;
	}
}

static int dart_complete(struct gl_transport *t)
{
	dart_base = t->base;
	gl_base_clone(&t->ops, dart_base, THIS_MODULE);
	t->ops.init = dart_init;
	t->ops.release = gl_release;
	t->ops.cwnd_event = dart_cwnd_event;
	t->ops.in_ack_event = dart_in_ack_event;
	t->ops.min_tso_segs = dart_min_tso_segs;
	return 0;
}

/* dart_complete() copies all other operations from dcqcn. */
static struct gl_transport dart_transport __read_mostly = {
	.ops = { .name = "dart" },
	.extends	= "dcqcn",
	.complete	= dart_complete,
	.sock_size	= sizeof(struct dart),
	.protocol	= &dart_protocol,
	.on_xmit	= dart_on_xmit,
	.on_last	= dart_on_last,
	.on_ack		= dart_on_ack,
	.on_packet	= dart_on_packet,
	.on_kick	= dart_on_kick,
	.on_switch	= dart_on_switch,
	.on_info	= dart_on_info,
	.on_free	= dart_on_free,
	.sockopt	= dart_sockopt,
};

/* --- net.ipv4.dart_* ----------------------------------------------------------------- */

static unsigned int dart_tenancy_max = __DART_TENANT_MAX - 1;
static unsigned int dart_tokens_max = GL_DEFLECT_TOKENS_MAX;
static unsigned int dart_size_max = 65535;	/* bytes that TCP sends as one GSO packet */
static unsigned int dart_lookahead_max = 1000000;

#define DART_SYSCTL(name, field, most)		\
	GL_SYSCTL_UINT("dart_" name, struct dart_net, field, SYSCTL_ZERO, most)

static const struct ctl_table dart_sysctl_template[] = {
	DART_SYSCTL("tenant", tenancy, &dart_tenancy_max),
	DART_SYSCTL("shares", shares, SYSCTL_ONE),
	DART_SYSCTL("tokens", tokens, &dart_tokens_max),
	DART_SYSCTL("short", size, &dart_size_max),
	DART_SYSCTL("lookahead", lookahead, &dart_lookahead_max),
	DART_SYSCTL("trust", trust, SYSCTL_ONE),
};

static int __net_init dart_net_init(struct net *net)
{
	struct dart_net *dn = net_generic(net, dart_net_id);

	dart_senders_init(&dn->senders);
	dn->shares = 1;
	dn->tokens = GL_DEFLECT_TOKENS_MAX;
	dn->size = 8192;	/* "2 - 8 KB flows" (§VI-A) */
	dn->lookahead = 1000;
	dn->sysctl = gl_sysctl_add(net, dart_sysctl_template,
				   ARRAY_SIZE(dart_sysctl_template), dn);
	return dn->sysctl ? 0 : -ENOMEM;
}

/* The sockets of a namespace are freed before it, so the set of senders is empty. */
static void __net_exit dart_net_exit(struct net *net)
{
	struct dart_net *dn = net_generic(net, dart_net_id);

	gl_sysctl_remove(dn->sysctl);
	dart_senders_exit(&dn->senders);
}

static struct pernet_operations dart_net_ops = {
	.init	= dart_net_init,
	.exit	= dart_net_exit,
	.id	= &dart_net_id,
	.size	= sizeof(struct dart_net),
};

static int __init dart_module_init(void)
{
	int err = register_pernet_subsys(&dart_net_ops);

	if (err)
		return err;
	err = gl_register_transport(&dart_transport);
	if (err)
		unregister_pernet_subsys(&dart_net_ops);
	return err;
}

static void __exit dart_module_exit(void)
{
	gl_unregister_transport(&dart_transport);
	unregister_pernet_subsys(&dart_net_ops);
}

module_init(dart_module_init);
module_exit(dart_module_exit);

MODULE_DESCRIPTION("Dart: a receiver's line divided among its senders");
MODULE_LICENSE("GPL");
MODULE_VERSION(GL_VERSION);

// SPDX-License-Identifier: GPL-2.0
/* Trimmed packets: an exact report of a loss.
 *
 * A switch port that trims (sched/color_trim.c) cuts off the data of a packet and queues the
 * headers in front of other packets.  The receiving host reports the loss to the sender, which
 * retransmits the segment: no timer, no duplicate ACKs, no guess.
 *
 *	sender                      port                       receiver
 *	[h|data] -----------------> full: [h|bytes] ----------> reserves link time
 *	marks the segment lost <----------------- [ACK|seq, bytes]
 *	[h|data] ----------------------------------------------> in the reserved time
 *
 * This works for each TCP connection, also without a transport of greenlane, and needs no
 * agreement: to a host without greenlane both packets are pure ACKs.  The report has the codepoint
 * of a trimmed packet, so switches do not drop it first either.
 *
 * The receiver sends one report in the time that its link needs for the repair, as NDP paces its
 * pulls (Handley et al., SIGCOMM 2017, §3.2).  Without that the retransmissions of a crowd meet
 * the same full port, again and again: 1000 flows of dctcp would fill a third of the link with
 * headers.
 *
 * A header of a segment whose report waits causes no second one.
 *
 * If a process owns the socket, either end tries again after GL_TRIM_RETRY.  Reports and retries
 * wait in a tree of the namespace.
 */
#include <linux/bitfield.h>
#include <linux/hrtimer.h>
#include <linux/slab.h>
#include <net/link_speed.h>
#include <net/mptcp.h>

#include <net/gl_compat.h>
#include <trace/events/greenlane.h>
#include "gl_internal.h"

/* Bytes of data that were cut, of the option's word: see color_trim.c.  A report has its number in
 * the other bits, for a transport that counts them.
 */
#define GL_TRIM_BYTES	GENMASK(15, 0)
#define GL_TRIM_NUMBER	GENMASK(31, 16)

/* A process that owns a socket is likely to release it soon: try again after this time, then after
 * two, four … times this.  The last try is after 8 ms in all; then TCP finds the loss by itself.
 */
#define GL_TRIM_RETRY	(2 * NSEC_PER_USEC)
#define GL_TRIM_TRIES	12

/* Limits of the repairs that wait, in time and number: TCP finds the other losses by itself.  An
 * RTO is 200 ms, by default, and 16384 packets are 5 ms of a link of 40 Gbit/s.
 */
#define GL_TRIM_AHEAD	(100 * NSEC_PER_MSEC)
#define GL_TRIM_MAX	16384

/* Repairs that the timer handles before it yields to other softirqs. */
#define GL_TRIM_BUDGET	64

static const struct gl_kind gl_trim_report = {
	.codepoint	= GL_CP_TRIMMED,
	.code		= GL_CODE_LOST,
};

/**
 * struct gl_repair - a segment that was trimmed
 * @node: in struct gl_trims.tree
 * @segment: in struct gl_trims.segments; empty at the sender
 * @at: when this end acts, ns
 * @sk: the connection; holds a reference
 * @seq: first byte
 * @end: behind the last byte
 * @reported: this is the sender, and a report has arrived; else this end sends the report
 * @alone: TCP does not look for losses after that: it ignores an old ACK, or has processed it
 * @number: of the report that has arrived
 * @tries: how often a process owned the socket
 */
struct gl_repair {
	struct rb_node	node;
	struct rb_node	segment;
	u64		at;
	struct sock	*sk;
	u32		seq;
	u32		end;
	bool		reported;
	bool		alone;
	u16		number;
	u8		tries;
};

/* --- at one end ------------------------------------------------------------------ */

/* Does the connection's transport pace repairs?  Then reports are numbered, and leave at once. */
static bool gl_trim_is_numbered(const struct gl_sock *gs)
{
	return gs && gs->transport->on_trimmed;
}

/* Send a report, unless the data has arrived meanwhile. */
static void gl_trim_send(struct sock *sk, const struct gl_repair *r)
{
	struct gl_sock *gs = gl_sock_locked(sk);
	const struct inet_connection_sock_af_ops *ops = gs ? gs->tcp_ops :
							inet_csk(sk)->icsk_af_ops;
	u32 word[] = { r->seq, r->end - r->seq };

	if (!after(r->end, tcp_sk(sk)->rcv_nxt) || !gl_can_take(ops))
		return;
	if (gl_trim_is_numbered(gs))
		word[1] |= FIELD_PREP(GL_TRIM_NUMBER, gs->transport->on_trimmed(sk, gs));
	if (gl_craft_words(sk, ops, &gl_trim_report, 0, word, ARRAY_SIZE(word)))
		gl_inc_stats(sock_net(sk), GL_MIB_REPORTSENT);
}

/* Without SACK, TCP estimates the packets in flight by duplicate ACKs, and a report is one. */
static bool gl_trim_is_fit(const struct sock *sk)
{
	return tcp_is_sack(tcp_sk(sk)) && !gl_tcp_signed(sk);
}

/* Socket locked and not owned by a process, BH off. */
static void gl_trim_act(struct sock *sk, const struct gl_repair *r)
{
	struct gl_sock *gs = gl_sock_locked(sk);
	bool lost;

	if (!((1 << sk->sk_state) & GL_STATES) || !gl_trim_is_fit(sk))
		return;
	if (!r->reported) {
		gl_trim_send(sk, r);
		return;
	}
	lost = gl_lose_range(sk, r->seq, r->end);
	if (gl_trim_is_numbered(gs))
		gs->transport->on_named(sk, gs, r->number);
	else if (lost && r->alone)
		/* TCP would repair the loss, but reduce its window at the next ACK only if the
		 * repair has not arrived by then.
		 */
		tcp_enter_cwr(sk);
	if (lost && r->alone)
		gl_xmit(sk);
}

/* --- repairs that wait ----------------------------------------------------------- */

static bool gl_trim_is_earlier(struct rb_node *a, const struct rb_node *b)
{
	return rb_entry(a, struct gl_repair, node)->at < rb_entry(b, struct gl_repair, node)->at;
}

static bool gl_trim_is_before(struct rb_node *a, const struct rb_node *b)
{
	const struct gl_repair *x = rb_entry(a, struct gl_repair, segment);
	const struct gl_repair *y = rb_entry(b, struct gl_repair, segment);

	return x->sk == y->sk ? before(x->seq, y->seq) : x->sk < y->sk;
}

static struct gl_repair *gl_trim_first(const struct gl_trims *trims)
{
	return rb_entry_safe(rb_first_cached(&trims->tree), struct gl_repair, node);
}

static void gl_trim_free(struct gl_repair *r)
{
	sock_put(r->sk);
	kfree(r);
}

/* Add a repair that is not in the tree.  Return: false if there are too many. */
static bool gl_trim_add(struct gl_trims *trims, struct gl_repair *r)
{
	bool fits;

	spin_lock_bh(&trims->lock);
	fits = trims->n < GL_TRIM_MAX;
	if (fits) {
		trims->n++;
		RB_CLEAR_NODE(&r->segment);
		if (!r->reported)
			rb_add(&r->segment, &trims->segments, gl_trim_is_before);
		if (rb_add_cached(&r->node, &trims->tree, gl_trim_is_earlier))
			hrtimer_start(&trims->timer, ns_to_ktime(r->at), HRTIMER_MODE_ABS_SOFT);
	}
	spin_unlock_bh(&trims->lock);
	return fits;
}

/* Remove a repair from the tree. */
static void gl_trim_remove(struct gl_trims *trims, struct gl_repair *r)
{
	rb_erase_cached(&r->node, &trims->tree);
	if (!RB_EMPTY_NODE(&r->segment))
		rb_erase(&r->segment, &trims->segments);
	trims->n--;
}

/* Reduce a segment to a part of which no report waits; it may be empty.  So the repairs of a
 * connection that wait are at most its window, however often a header arrives: otherwise one peer
 * could reserve the link, and delay the repairs of all others by GL_TRIM_AHEAD.
 */
static void gl_trim_reduce(struct gl_trims *trims, struct gl_repair *r)
{
	struct rb_node *node;

	spin_lock_bh(&trims->lock);
	node = trims->segments.rb_node;
	while (node && before(r->seq, r->end)) {
		const struct gl_repair *waits = rb_entry(node, struct gl_repair, segment);

		if (r->sk == waits->sk && before(r->seq, waits->end) && after(r->end, waits->seq)) {
			if (before(r->seq, waits->seq))
				r->end = waits->seq;
			else
				r->seq = waits->end;
		}
		node = r->sk < waits->sk || (r->sk == waits->sk && before(r->seq, waits->seq)) ?
		       node->rb_left : node->rb_right;
	}
	spin_unlock_bh(&trims->lock);
}

/* Keep a copy of a repair until its time, with a reference on the connection. */
static void gl_trim_wait(struct sock *sk, struct gl_trims *trims, const struct gl_repair *repair)
{
	struct gl_repair *r;

	/* A reference on the socket must be one on its namespace, too. */
	if (!gl_net_stays(sk))
		return;
	r = kmemdup(repair, sizeof(*r), GFP_ATOMIC | __GFP_NOWARN);
	if (r) {
		sock_hold(sk);
		if (gl_trim_add(trims, r))
			return;
		gl_trim_free(r);
	}
	gl_inc_stats(sock_net(sk), GL_MIB_NOMEMORY);
}

/* A process owns the socket.  Return: false after the last try. */
static bool gl_trim_later(struct gl_repair *r, u64 now)
{
	if (r->tries == GL_TRIM_TRIES)
		return false;
	r->at = now + (GL_TRIM_RETRY << r->tries++);
	r->alone = true;
	return true;
}

/* The time of a repair, which is not in the tree now. */
static void gl_trim_due(struct gl_trims *trims, struct gl_repair *r, u64 now)
{
	struct sock *sk = r->sk;
	bool later = false;

	bh_lock_sock(sk);
	if (sock_owned_by_user(sk))
		later = gl_trim_later(r, now);
	else
		gl_trim_act(sk, r);
	bh_unlock_sock(sk);
	if (!later || !gl_trim_add(trims, r))
		gl_trim_free(r);
}

/* Remove the first repair if it is due, else start the timer for it. */
static struct gl_repair *gl_trim_next(struct gl_trims *trims, u64 now)
{
	struct gl_repair *r;

	spin_lock_bh(&trims->lock);
	r = gl_trim_first(trims);
	if (r && r->at <= now) {
		gl_trim_remove(trims, r);
	} else if (r) {
		hrtimer_start(&trims->timer, ns_to_ktime(r->at), HRTIMER_MODE_ABS_SOFT);
		r = NULL;
	}
	spin_unlock_bh(&trims->lock);
	return r;
}

static enum hrtimer_restart gl_trim_timer(struct hrtimer *timer)
{
	struct gl_trims *trims = container_of(timer, struct gl_trims, timer);
	u64 now = ktime_get_ns();
	struct gl_repair *r;
	int n;

	for (n = 0; n < GL_TRIM_BUDGET; n++) {
		r = gl_trim_next(trims, now);
		if (!r)
			return HRTIMER_NORESTART;
		gl_trim_due(trims, r, now);
	}
	hrtimer_start(timer, ns_to_ktime(now), HRTIMER_MODE_ABS_SOFT);
	return HRTIMER_NORESTART;
}

/* --- a packet arrives ------------------------------------------------------------ */

/* The option with a code; NULL if there is none, or with fewer words.  It is the last one of a
 * trimmed packet.
 */
static const u8 *gl_trim_option(const struct tcphdr *th, u8 code, unsigned int words)
{
	const u8 *opt = NULL;

	do {
		opt = gl_option_find(th, opt);
	} while (opt && (opt[4] != code || opt[1] < GL_OPT_LEN(words)));
	return opt;
}

/**
 * gl_trim_is_report() - is this a report?
 * @th: a complete TCP header
 *
 * Return: true if it has the option of a report.
 */
bool gl_trim_is_report(const struct tcphdr *th)
{
	return gl_trim_option(th, GL_CODE_LOST, 2);
}

/* The segment that a packet is about; false for any other packet. */
static bool gl_trim_read(const struct tcphdr *th, struct gl_repair *r)
{
	const u8 *opt = gl_trim_option(th, GL_CODE_LOST, 2);

	r->reported = opt;
	if (opt) {
		r->seq = get_unaligned_be32(opt + GL_OPT_LEN(0));
		r->end = r->seq + (get_unaligned_be32(opt + GL_OPT_LEN(1)) & GL_TRIM_BYTES);
		r->number = FIELD_GET(GL_TRIM_NUMBER, get_unaligned_be32(opt + GL_OPT_LEN(1)));
		return true;
	}
	opt = gl_trim_option(th, GL_CODE_TRIMMED, 1);
	if (!opt)
		return false;
	r->seq = ntohl(th->seq);
	r->end = r->seq + (get_unaligned_be32(opt + GL_OPT_LEN(0)) & GL_TRIM_BYTES);
	return true;
}

/* Reserve link time for the repair, whose packet is as long as the trimmed one was.  Return: when
 * it begins, ns; 0 if too much is reserved.
 */
static u64 gl_trim_reserve(const struct sock *sk, const struct sk_buff *skb, u32 cut, u64 now)
{
	struct link_speed *link;
	u32 bytes;
	u64 at;

	rcu_read_lock();
	link = link_speed_rcu(sk);
	/* The peer has not sent more than fits into this end's MTU. */
	cut = min_t(u32, cut, max(tcp_sk(sk)->advmss, inet_csk(sk)->icsk_ack.rcv_mss));
	bytes = skb->len + cut - GL_OPT_LEN(1) + LINK_SPEED_FRAME + READ_ONCE(link->extra);
	link = link_speed_wire(link);
	at = link_speed_reserve(link, now, link_speed_ns(link_speed_mbit(link), bytes),
				GL_TRIM_AHEAD);
	rcu_read_unlock();
	return at;
}

/* Could the peer have sent it?  The trimmed data must fit into the window. */
static bool gl_trim_heeds(struct sock *sk, const struct tcphdr *th, const struct gl_repair *r)
{
	struct gl_seg seg = {
		.seq		= ntohl(th->seq),
		.end_seq	= r->reported ? ntohl(th->seq) : r->end,
		.ack		= ntohl(th->ack_seq),
	};

	return gl_heeds(sk, &seg, false);
}

static void gl_trim_count(const struct sock *sk, const struct gl_repair *r)
{
	if (r->reported) {
		gl_inc_stats(sock_net(sk), GL_MIB_REPORTRECEIVED);
		trace_greenlane_reported(sk, r->seq, r->end - r->seq);
	} else {
		gl_inc_stats(sock_net(sk), GL_MIB_TRIMMED);
		trace_greenlane_trimmed(sk, r->seq, r->end - r->seq);
	}
}

static void gl_trim_locked(struct sock *sk, const struct sk_buff *skb, const struct tcphdr *th,
			   struct gl_repair *r)
{
	struct gl_trims *trims = &gl_net(sock_net(sk))->trims;
	u64 now = ktime_get_ns();

	if (!gl_trim_heeds(sk, th, r) || !gl_trim_is_fit(sk))
		return;
	/* Data that has arrived must not reserve the link. */
	if (!r->reported && !after(r->end, tcp_sk(sk)->rcv_nxt))
		return;
	r->alone = before(ntohl(th->ack_seq), tcp_sk(sk)->snd_una);
	gl_trim_count(sk, r);
	r->at = now;
	if (!r->reported && !gl_trim_is_numbered(gl_sock_locked(sk))) {
		gl_trim_reduce(trims, r);
		if (!before(r->seq, r->end))
			return;
		r->at = gl_trim_reserve(sk, skb, r->end - r->seq, now);
		if (!r->at)
			return;
	}
	if (sock_owned_by_user(sk))
		gl_trim_later(r, r->at);
	if (r->at > now)
		gl_trim_wait(sk, trims, r);
	else
		gl_trim_act(sk, r);
}

/**
 * gl_trim_in() - a packet has arrived that may have been trimmed, or report that one was
 * @sk: its socket, not locked
 * @skb: the packet, at LOCAL_IN; TCP gets it afterwards
 * @thoff: offset of the TCP header, which is complete
 * @family: NFPROTO_IPV4 or NFPROTO_IPV6
 *
 * Return: true if it is one of both.
 */
bool gl_trim_in(struct sock *sk, struct sk_buff *skb, int thoff, u8 family)
{
	const struct tcphdr *th = (const struct tcphdr *)(skb->data + thoff);
	struct gl_repair r = { .sk = sk };

	if (!READ_ONCE(gl_net(sock_net(sk))->trim) || th->syn || th->rst || !th->ack ||
	    !gl_trim_read(th, &r) || sk_is_mptcp(sk))
		return false;
	if (gl_in_refused(sk, skb, thoff, family)) {
		gl_inc_stats(sock_net(sk), GL_MIB_INVALID);
		return true;
	}
	th = (const struct tcphdr *)(skb->data + thoff);	/* a filter may have moved it */
	local_bh_disable();	/* NFQUEUE reinjects packets in process context */
	bh_lock_sock_nested(sk);
	gl_trim_locked(sk, skb, th, &r);
	bh_unlock_sock(sk);
	local_bh_enable();
	return true;
}

/* --- a namespace ----------------------------------------------------------------- */

void gl_trim_net_init(struct gl_net *gn)
{
	struct gl_trims *trims = &gn->trims;

	gn->trim = 1;
	spin_lock_init(&trims->lock);
	trims->tree = RB_ROOT_CACHED;
	trims->segments = RB_ROOT;
	hrtimer_setup(&trims->timer, gl_trim_timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
}

/* The hooks are removed, so only the timer still adds repairs. */
void gl_trim_net_exit(struct gl_net *gn)
{
	struct gl_trims *trims = &gn->trims;
	struct gl_repair *r;

	hrtimer_cancel(&trims->timer);
	while ((r = gl_trim_first(trims))) {
		gl_trim_remove(trims, r);
		gl_trim_free(r);
	}
}

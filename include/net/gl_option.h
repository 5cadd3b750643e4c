/* SPDX-License-Identifier: GPL-2.0 */
/* The greenlane TCP option, which identifies a packet to the other end.
 *
 * Networks re-mark DSCPs, and applications set them too.  So the DSCP only selects the packets
 * that switches drop first, and this option the packets that the other end answers or
 * consumes:
 *
 *	 0        8        16                32       40       48       64
 *	|  254   | length | 0x474c, "GL"    |  code  | answer | field (*)| words ...
 *
 * Kind 254 is shared by experiments; each has a 16-bit identifier (RFC 6994; this one is not
 * registered).  Receivers skip an option with an unknown identifier.  In a SYN or SYN-ACK the
 * code (enum gl_code) is the sender's protocol, in other packets it is the packet's kind.  The
 * answer byte is 1 in a SYN-ACK and else 0: there are hosts that echo options that they do not
 * know.
 *
 * (*) telemetry, which a sender may request from the switches: see <net/gl_int.h>; in a packet that
 * requests an answer its number, 8 bits, which the answer repeats; else 0.  Without the number an
 * answer that is late would be taken for the answer to a later packet.
 */
#ifndef _NET_GL_OPTION_H
#define _NET_GL_OPTION_H

#include <linux/tcp.h>
#include <net/tcp.h>

/* In bytes, the largest TCP header, and our option with @words 32-bit words. */
#define GL_HEADER_MAX		60
#define GL_OPT_LEN(words)	(8 + 4 * (words))

#define GL_OPT_EXID		0x474c

/* TCP-AO (RFC 5925); defined in <net/tcp.h> since 6.7. */
#define GL_TCPOPT_AO		29

/* Maximum number of 32-bit words in the greenlane TCP option. */
#define GL_WORDS_MAX	4

/* Codes in our TCP option.  ABI between hosts.  48 to 63 are free for tests. */
enum gl_code {
	GL_CODE_NONE,
	GL_CODE_TLT		= 1,	/* in a SYN or SYN-ACK: "I run TLT" */
	GL_CODE_CREDITS		= 2,	/* "I send by credits" */
	GL_CODE_SHARE		= 3,	/* "I run dart"; in an ACK, a share of the link */
	GL_CODE_CLOCK		= 4,	/* tcp_tlt.c */
	GL_CODE_CLOCK_ECHO	= 5,
	GL_CODE_REQUEST		= 6,	/* by rd_core.h: tcp_xpass.c, tcp_ndp.c, tcp_homa.c */
	GL_CODE_CREDIT		= 7,
	GL_CODE_PROBE		= 8,
	GL_CODE_PROBE_ACK	= 9,
	GL_CODE_TLT_DART	= 10,	/* in a SYN or SYN-ACK: "TLT around dart" */
	GL_CODE_TRIMMED		= 11,	/* a switch port cut the data: sched/color_trim.c */
	GL_CODE_HPCC		= 12,	/* "I run hpcc"; on data, a request for telemetry */
	GL_CODE_HPCC_ECHO	= 13,	/* on an ACK: telemetry that data carried */
	GL_CODE_TLT_HPCC	= 14,	/* in a SYN or SYN-ACK: "TLT around hpcc" */
	GL_CODE_LOST		= 15,	/* a report: data was trimmed */
	GL_CODE_NDP		= 16,	/* "I send by pulls" */
	GL_CODE_HOMA		= 17,	/* "I send by grants" */
	GL_CODE_MAX		= 63,
};

/**
 * gl_option_next() - find a TCP option
 * @th: a complete TCP header
 * @kind: the option's kind
 * @from: NULL to begin with the first option, or the last return value to continue behind it
 *
 * Return: the option's first byte, its kind; NULL if there is no such option.
 */
static inline const u8 *gl_option_next(const struct tcphdr *th, u8 kind, const u8 *from)
{
	const u8 *end = (const u8 *)th + th->doff * 4;
	const u8 *opt = from ? from + from[1] : (const u8 *)(th + 1);

	while (opt < end) {
		if (*opt == TCPOPT_EOL)
			return NULL;
		if (*opt == TCPOPT_NOP) {
			opt++;
			continue;
		}
		if (end - opt < 2 || opt[1] < 2 || opt[1] > end - opt)
			return NULL;
		if (*opt == kind)
			return opt;
		opt += opt[1];
	}
	return NULL;
}

/**
 * gl_option_find() - find the greenlane option
 * @th: a complete TCP header
 * @from: NULL to begin with the first option, or the last return value to continue behind it
 *
 * Other experiments (early Fast Open, SMC) share the option kind.
 *
 * Return: its first byte; NULL if there is no greenlane option.
 */
static inline const u8 *gl_option_find(const struct tcphdr *th, const u8 *from)
{
	do {
		from = gl_option_next(th, TCPOPT_EXP, from);
	} while (from && (from[1] < GL_OPT_LEN(0) || get_unaligned_be16(from + 2) != GL_OPT_EXID));
	return from;
}

/**
 * gl_option_write() - write the greenlane option
 * @option: buffer of GL_OPT_LEN(@words) bytes
 * @code: its code
 * @field: see above
 * @word: the option's words, in host byte order
 * @words: number of them, at most GL_WORDS_MAX
 */
static inline void gl_option_write(__be32 *option, u8 code, u16 field, const u32 *word,
				   unsigned int words)
{
	unsigned int i;

	option[0] = htonl(TCPOPT_EXP << 24 | GL_OPT_LEN(words) << 16 | GL_OPT_EXID);
	option[1] = htonl(code << 24 | field);
	for (i = 0; i < words; i++)
		option[2 + i] = htonl(word[i]);
}

#endif /* _NET_GL_OPTION_H */

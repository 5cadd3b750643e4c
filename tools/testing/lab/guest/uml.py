# SPDX-License-Identifier: GPL-2.0
"""A guest that is a User-Mode Linux kernel: one processor and virtual time, or several."""

# ns that a reading of the clock takes with --fine: about the transmission time of the smallest
# frame at 100 Gbit/s.
FINE = 8

# Executes the arguments with a tmpfs of huge pages at /dev/shm, if this process may mount one.  The guest's
# memory is a file there, and huge pages save a tenth of the processor time of a load with 96 hosts.  The
# kernel would prefer the directory of one of these variables: Snakemake sets them to one on a disk, to
# which the host writes the file back.
_MEMORY = """\
mount='mount -t tmpfs -o huge=always,size=100% tmpfs /dev/shm'
unshare --mount $mount 2>/dev/null || exec "$@"
unset TMPDIR TMP TEMP
exec unshare --mount sh -c '$0 && exec "$@"' "$mount" "$@"
"""


def command(kdir, init, run, out, args, streams):
    """The command that starts the guest; its consoles write to the streams."""
    del out
    log, stdout, stderr = streams
    words = [
        "sh", "-c", _MEMORY, "sh", str(kdir / "linux"),
        f"mem={args.mem}", "root=/dev/root", "rootfstype=hostfs", "hostfs=/",
        f"init={init}", f"GLRUN={run}", f"uml_dir={run}", "umid=uml",
        "con=null", f"con0=null,fd:{log.into}", f"con1=null,fd:{stdout.into}",
        f"con2=null,fd:{stderr.into}", "console=tty0", "printk.time=1",
        # No rate limit for messages that init or a test writes to the log.
        "printk.devkmsg=on", "panic=-1", "kunit.enable=1", "kunit.autorun=1",
    ]
    if args.smp:
        words.append(f"ncpus={args.cpus}")
    if not args.real_time:
        # 6.12's jitter RNG measures times until they differ, and in virtual time they do not.
        words += ["time-travel=inf-cpu", "initcall_blacklist=jent_mod_init"]
    if args.fine:
        words.append(f"time-travel-step={FINE}")
    if args.kernel != "6.1" and not args.no_seccomp:
        words.append("seccomp=auto")
    return words

# SPDX-License-Identifier: GPL-2.0
"""A guest that is a User-Mode Linux kernel: one processor and virtual time, or several."""
import functools
import subprocess

# ns that a reading of the clock takes with --fine: about the transmission time of the smallest
# frame at 100 Gbit/s.
FINE = 8

# The guest's memory is a file, and the kernel creates it in the first of these directories that is set,
# or in /dev/shm.  Snakemake sets them to a directory on a disk, to which the host writes it back.
_DIRECTORIES = ("TMPDIR", "TMP", "TEMP")
_MOUNT = ["mount", "-t", "tmpfs", "-o", "huge=always,size=100%", "tmpfs", "/dev/shm"]


@functools.cache
def _memory():
    """Words before a command that place the guest's memory in huge pages, which save a tenth of the
    processor time of a load with 96 hosts; none without the right to mount."""
    own = ["unshare", "--mount"]
    if subprocess.run([*own, *_MOUNT], capture_output=True, check=False).returncode:
        return []
    return ["env", *(f"--unset={name}" for name in _DIRECTORIES),
            *own, "sh", "-c", f'{" ".join(_MOUNT)} && exec "$@"', "sh"]


def command(kdir, init, run, out, args, streams):
    """The command that starts the guest; its consoles write to the streams."""
    del out
    log, stdout, stderr = streams
    words = [
        *_memory(), str(kdir / "linux"),
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

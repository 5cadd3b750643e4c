# SPDX-License-Identifier: GPL-2.0
"""A guest that is a virtual machine: an x86 kernel on processors, in real time.

virtme-ng boots the kernel on the host's file system.  The init is the same as in
User-Mode Linux.  The command's output uses two virtio ports, so that only the
kernel writes to the serial console.
"""

import os
import pathlib
import subprocess

# Seconds within which a kernel must print its first message under KVM.
KVM_PATIENCE = 15


def image(kdir):
    """The file of the kernel to boot: one that we built, or the distribution's."""
    built = kdir / "arch/x86/boot/bzImage"
    return built if built.exists() else next((kdir / "boot").glob("vmlinuz-*"))


def own_modules(kdir):
    """The directory of the modules that belong to the distribution's kernel."""
    return next((kdir / "lib/modules").glob("*"), "")


def kvm_works(kdir, cache):
    """Does an ordinary guest run under KVM?

    /dev/kvm may exist, answer, make virtual machines and still never run one.
    So test whether this kernel prints its first message; without a root file
    system it ends by itself.  The result is cached until the host boots again.
    """
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    known = cache / f"kvm-{boot}"
    if not known.exists():
        try:
            seen = subprocess.run(
                ["qemu-system-x86_64", "-accel", "kvm", "-cpu", "host", "-m", "512M",
                 "-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio",
                 "-kernel", image(kdir), "-append",
                 "console=ttyS0 earlyprintk=serial,ttyS0,115200 panic=-1"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, timeout=KVM_PATIENCE, check=False).stdout
        except subprocess.TimeoutExpired as late:
            seen = late.stdout or b""
        known.write_text("yes" if b"Linux version" in seen else "no")
    return known.read_text() == "yes"


def command(kdir, init, run, out, args, streams):
    """The command that starts the guest; its ports write to the streams."""
    ports = []
    for name, stream in zip(("stdout", "stderr"), streams[1:]):
        ports += ["-chardev", f"file,id=gl{name},path={stream.path}",
                  "-device", "virtio-serial-pci",
                  "-device", f"virtserialport,chardev=gl{name},name=greenlane.{name}"]
    for number, netdev in enumerate(args.nic):
        # Guests of one network have different addresses.
        mac = ":".join(f"{byte:02x}" for byte in (
            0x52, 0x54, *os.getpid().to_bytes(3, "big"), number))
        ports += ["-netdev", f"{netdev},id=nic{number}", "-device",
                  f"virtio-net-pci,netdev=nic{number},romfile=,mac={mac}"]
    words = [
        str(args.cache / "virtme-ng/bin/virtme-run"), "--kimg", str(image(kdir)),
        "--mods=none" if (kdir / "arch").exists() else "--mods=auto",
        "--disable-microvm", "--force-9p", "--cpus", str(args.cpus),
        "--memory", args.mem, "--rwdir", str(run), "--rwdir", str(out),
        "--script-sh", f"exec {init} {run}", "--show-boot-console",
    ]
    if not kvm_works(kdir, args.cache):
        words.append("--disable-kvm")
    for option in ("printk.devkmsg=on", "kunit.enable=1", "kunit.autorun=1"):
        words += ["--kopt", option]
    return words + ["--qemu-opts", *ports]

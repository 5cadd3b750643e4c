# SPDX-License-Identifier: GPL-2.0
"""A guest that is a virtual machine: an x86 kernel on processors, in real time.

virtme-ng boots the kernel on the host's file system.  The init is the same as in
User-Mode Linux.  The command's output uses two virtio ports, so that only the
kernel writes to the serial console.
"""

import lzma
import os
import pathlib
import shlex
import shutil
import struct
import subprocess

# Seconds within which a kernel must print its first message under KVM.
KVM_PATIENCE = 15


# Documentation/arch/x86/boot.rst: offsets of setup_sects, and of payload_offset and payload_length.
SETUP_SECTS, PAYLOAD = 0x1f1, 0x248
SECTOR = 512
XZ = b"\xfd7zXZ\0"
# The package ovmf
FIRMWARE = pathlib.Path("/usr/share/OVMF")
STUB = "/usr/lib/systemd/boot/efi/linuxx64.efi.stub"    # systemd-boot-efi
SNAKEOIL = pathlib.Path("/usr/share/ovmf/PkKek-1-snakeoil.pem")


def image(kdir):
    """The file of the kernel to boot: one that we built, or the distribution's."""
    built = kdir / "arch/x86/boot/bzImage"
    if built.exists():
        return built
    return unpacked(packed(kdir)) or packed(kdir)


def packed(kdir):
    """The file of the distribution's kernel, as its boot loader starts it."""
    return next((kdir / "boot").glob("vmlinuz-*"))


def unpacked(bzimage):
    """The ELF file within a bzImage, in a file beside it, which QEMU boots through PVH; None if that
    needs more than a decompressor of xz.

    An emulated processor takes 4 s to decompress the kernel, and ours half a second, once.
    """
    elf = bzimage.with_name(bzimage.name.replace("vmlinuz", "vmlinux"))
    if elf.exists():
        return elf
    config = bzimage.with_name(bzimage.name.replace("vmlinuz", "config"))
    if not config.exists() or "\nCONFIG_PVH=y\n" not in config.read_text(encoding="ascii"):
        return None
    content = bzimage.read_bytes()
    offset, length = struct.unpack_from("<II", content, PAYLOAD)
    begin = (content[SETUP_SECTS] + 1) * SECTOR + offset
    payload = content[begin:begin + length]
    if not payload.startswith(XZ):
        return None
    # Other guests may start at the same time.
    part = elf.with_name(f"{elf.name}.{os.getpid()}")
    part.write_bytes(lzma.LZMADecompressor().decompress(payload))
    part.replace(elf)
    return elf


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


def sign(key, program):
    """Sign a program for UEFI with the key of the firmware's database."""
    subprocess.run(["sbsign", "--key", key, "--cert", SNAKEOIL, "--output", program, program],
                   check=True, stderr=subprocess.DEVNULL)


def secure_boot(words, run):
    """The command of virtme-ng's that boots by UEFI firmware with Secure Boot instead.

    QEMU changes the header of a kernel that -kernel names, so its signature is wrong.  One signed
    program on a disk has the kernel, its initramfs and its command line (systemd-stub).  The
    package ovmf has a public "snakeoil" key for tests.
    """
    shown = subprocess.run(
        [*words[:1], "--dry-run", "--show-command", "--save-initramfs", run / "initrd", *words[1:]],
        check=True, stdout=subprocess.PIPE).stdout.decode()
    qemu = shlex.split(shown)
    given = {}
    for option in ("-kernel", "-append", "-initrd"):
        at = qemu.index(option)
        _, given[option] = qemu[at:at + 2]
        del qemu[at:at + 2]
    key = run / "snakeoil.key"      # without its password
    subprocess.run(["openssl", "rsa", "-in", SNAKEOIL.with_suffix(".key"), "-passin",
                    "pass:snakeoil", "-out", key], check=True, stderr=subprocess.DEVNULL)
    kernel, program, store = run / "vmlinuz", run / "esp/EFI/BOOT/BOOTX64.EFI", run / "vars.fd"
    shutil.copyfile(given["-kernel"], kernel)
    sign(key, kernel)
    (run / "cmdline").write_text(given["-append"])
    program.parent.mkdir(parents=True)
    sections = {".cmdline": (run / "cmdline", 0x30000), ".linux": (kernel, 0x2000000),
                ".initrd": (given["-initrd"], 0x3000000)}
    subprocess.run(
        ["objcopy", *(word for name, (file, address) in sections.items() for word in (
            "--add-section", f"{name}={file}", "--change-section-vma", f"{name}={address:#x}")),
         STUB, program], check=True)
    sign(key, program)
    shutil.copyfile(FIRMWARE / "OVMF_VARS_4M.snakeoil.fd", store)
    return [*qemu, "-machine", "smm=on",
            "-global", "driver=cfi.pflash01,property=secure,value=on",
            "-drive", "if=pflash,unit=0,format=raw,readonly=on,"
            f"file={FIRMWARE}/OVMF_CODE_4M.snakeoil.fd",
            "-drive", f"if=pflash,unit=1,format=raw,file={store}",
            "-drive", f"format=raw,file=fat:rw:{run}/esp"]


def command(kdir, init, run, out, args, streams):
    """The command that starts the guest; its ports write to the streams."""
    kernel = packed(kdir) if args.secure_boot else image(kdir)
    # init.c mounts the host's root again, with a cache.
    devices = ["-fsdev", "local,id=glroot,path=/,security_model=none,readonly=on,multidevs=remap",
               "-device", "virtio-9p-pci,fsdev=glroot,mount_tag=greenlane.root"]
    for name, stream in zip(("stdout", "stderr"), streams[1:]):
        devices += ["-chardev", f"file,id=gl{name},path={stream.path}",
                    "-device", "virtio-serial-pci",
                    "-device", f"virtserialport,chardev=gl{name},name=greenlane.{name}"]
    for number, netdev in enumerate(args.nic):
        # Guests of one network have different addresses.
        mac = ":".join(f"{byte:02x}" for byte in (
            0x52, 0x54, *os.getpid().to_bytes(3, "big"), number))
        devices += ["-netdev", f"{netdev},id=nic{number}", "-device",
                    f"virtio-net-pci,netdev=nic{number},romfile=,mac={mac}"]
    words = [
        str(args.cache / "virtme-ng/bin/virtme-run"), "--kimg", str(kernel),
        "--mods=none" if (kdir / "arch").exists() else "--mods=auto",
        "--disable-microvm", "--force-9p", "--cpus", str(args.cpus),
        "--memory", args.mem, "--rwdir", str(run), "--rwdir", str(out),
        "--script-sh", f"exec {init} {run}", "--show-boot-console",
    ]
    if not kvm_works(kdir, args.cache):
        words.append("--disable-kvm")
    for option in ("printk.devkmsg=on", "kunit.enable=1", "kunit.autorun=1"):
        words += ["--kopt", option]
    words += ["--qemu-opts", *devices]
    return secure_boot(words, run) if args.secure_boot else words

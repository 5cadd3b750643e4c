#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""install.rst, Secure Boot: refused modules, the page's commands, signed modules.

	this script (host) --> a virtual machine: UEFI firmware with Secure Boot, Debian's kernel

No shim boots the machine, so nobody can confirm the request that mokutil makes.  Instead of the
page's key, the firmware's own signs the modules that are loaded.
"""
import functools
import re
import subprocess

from lab import TOP, tap
from lab.guest import qemu
from lab.tap import case, equal, true

PAGE = (TOP / "Documentation/install.rst").read_text(encoding="utf-8")
SECTION = re.search(r"^Secure Boot\n=+\n(.*?)^\w[^\n]*\n=+\n", PAGE, re.M | re.S)[1]
# DKMS's key, the sysadmin's own, and the check.
WITH_DKMS, WITH_MAKE, CHECK = (
    re.sub(r"^\t", "", found, flags=re.M)
    for found in re.findall(r"^((?:\t[^\n]*\n)+)", SECTION, re.M)[1:])
ERRORS = re.findall(r"^\t(modprobe: .*|kernel: .*)$", SECTION, re.M)

# Each "== NAME STATUS" ends the output of a command.
SCRIPT = rf"""
exec 2>&1
try() {{
	local name=$1
	shift
	"$@"
	echo "== $name $?"
}}
mount -t efivarfs efivarfs /sys/firmware/efi/efivars
modules=/lib/modules/$(uname -r)
# depmod would read all of the distribution's modules.
mount -t tmpfs tmpfs "$modules"
mkdir -p "$modules/updates/greenlane/net"
cp "$GL_MODDIR"/net/*.ko "$modules/updates/greenlane/net"
ln -s "/usr/src/linux-headers-$(uname -r)" "$modules/build"
depmod 2>/dev/null
reboot() {{ :; }}
apt-get() {{ :; }}
# The password, twice
mokutil() {{ command mokutil "$@" < <(printf 'greenlane\ngreenlane\n'); }}
with_make() (
	set -e
	{WITH_MAKE}
)
with_dkms() {{
	mkdir -p /var/lib/dkms
	cp /etc/mok/mok.der /var/lib/dkms/mok.pub
	{WITH_DKMS}
}}
check() {{
	{CHECK}
}}
try state mokutil --sb-state
dmesg -C
try unsigned modprobe greenlane
try unsigned-log dmesg -t
try unsigned-sysctl sysctl -w net.ipv4.tcp_congestion_control=tlt_dctcp
try with-make with_make
try signer modinfo -F signer greenlane
try unknown modprobe greenlane
try with-dkms with_dkms
try check check
for ko in "$modules"/updates/greenlane/net/*.ko; do
	KBUILD_SIGN_PIN=snakeoil "$modules/build/scripts/sign-file" sha256 \
		{qemu.SNAKEOIL.with_suffix(".key")} {qemu.SNAKEOIL} "$ko"
done
try enrolled modprobe tcp_tlt
try enrolled-sysctl sysctl -w net.ipv4.tcp_congestion_control=tlt_dctcp
"""


@functools.cache
def machine():
    """The script's finished process."""
    return subprocess.run(
        [TOP / "scripts/guest", "--machine", "qemu", "--kernel", "stock", "--secure-boot",
         "--cpus", "1", "--timeout", "1200", "--", "bash", "-c", SCRIPT],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def said():
    """{name: (output, exit status)} of the script's commands."""
    done = machine()
    equal(done.returncode, 0, f"exit status of the machine: {done.stdout[-500:]}{done.stderr}")
    found = re.findall(r"(.*?)^== (\S+) (\d+)\n", done.stdout, re.M | re.S)
    return {name: (text, int(status)) for text, name, status in found}


@case("mokutil reports that Secure Boot is enabled")
def enabled():
    equal(said()["state"], ("SecureBoot enabled\n", 0), "mokutil --sb-state")


@case("unsigned modules: the page has the errors of modprobe and of the kernel")
def unsigned():
    text, status = said()["unsigned"]
    true(status, "exit status of modprobe")
    log = "".join(f"kernel: {row}\n" for row in said()["unsigned-log"][0].splitlines())
    true(any(error in text for error in ERRORS), f"the page lacks {text}")
    true(any(error in log for error in ERRORS), f"the page lacks {log}")
    true(said()["unsigned-sysctl"][1], "exit status of sysctl")


@case("the page's commands make a key, sign every module and request that the key is enrolled")
def commands():
    for name in ("with-make", "with-dkms"):
        equal(said()[name][1], 0, f"exit status: {said()[name][0]}")
    equal(said()["signer"], ("greenlane modules\n", 0), "modinfo -F signer")
    text, _ = said()["check"]
    true("is already in the enrollment request" in text, text)


@case("a key that is not enrolled: the kernel rejects the module with the page's error")
def unknown():
    text, status = said()["unknown"]
    true(status, "exit status of modprobe")
    true(text.strip() in ERRORS, f"the page lacks {text}")


@case("an enrolled key: the modules load, and the transport is selected")
def enrolled():
    equal(said()["enrolled"], ("", 0), "modprobe")
    equal(said()["enrolled-sysctl"][1], 0, "exit status of sysctl")


if __name__ == "__main__":
    tap.main()

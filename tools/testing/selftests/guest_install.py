#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""make install, DKMS and the packages: installation, removal, and refusals.

	this script (host) --> an overlay over the host's root --> one command

Modules are built for the distribution's headers, and for copies of the headers
with another kernel's release.  No module is loaded.
"""
import pathlib
import re
import shutil
import subprocess
import sys

from lab import TOP, VERSION, tap, transports
from lab.check import complaints
from lab.guest import overlay
from lab.tap import case, equal, true

MODULES = {f"{name}.ko" for name in transports.MODULES}
# The modules of earlier versions, of which only the number and the success of a build matter.
FEW = {"greenlane.ko", "link_speed.ko", "sch_color.ko"}
# An empty module without the kernel's headers, because including them takes most of a build.
NOTHING = "".join(
    f'static const char {name}[] __attribute__((section(".modinfo"), used, aligned(1))) =\n'
    f'\t"{name}=" {value};\n' for name, value in (("license", '"GPL"'), ("version", "GL_VERSION")))
OLD, NEWER = "5.10.0-30-amd64", "7.9.0-1-amd64"


# As in Documentation/install.rst
SIGN = r"""
mkdir -m 700 /tmp/mok
openssl req -new -x509 -newkey rsa:2048 -nodes -days 3650 -subj "/CN=greenlane modules/" \
	-outform DER -keyout /tmp/mok/mok.key -out /tmp/mok/mok.der
for ko in /lib/modules/$(uname -r)/updates/greenlane/net/*.ko; do
	/lib/modules/$(uname -r)/build/scripts/sign-file sha256 \
		/tmp/mok/mok.key /tmp/mok/mok.der "$ko"
done
"""


def version_of(path):
    """A sort key: the kernel's version."""
    return [int(n) for n in re.findall(r"\d+", path.name)]


HEADERS = max(pathlib.Path("/usr/src").glob("linux-headers-*-amd64"), key=version_of)
RELEASE = HEADERS.name.removeprefix("linux-headers-")


def modules_of(version):
    """The modules of a version: ours, or an earlier one of a test."""
    return MODULES if version == VERSION else FEW


class Host(overlay.Overlay):
    """A machine that runs the kernel `release`, with a copy of greenlane's tree in /tree."""

    def __init__(self, release=RELEASE):
        super().__init__(release)
        self.release = release
        self.add_tree("/tree")
        if release != RELEASE:
            shutil.rmtree(self.path(f"/lib/modules/{RELEASE}"))
            self.path(f"/lib/modules/{release}").mkdir()
        if release in (OLD, NEWER):
            self.add_headers(release)
        for name in ("order", "builtin", "builtin.modinfo"):
            self.write(f"/lib/modules/{release}/modules.{name}", "")
        self.run("depmod", release)
        self.before = self.changes()

    def changes(self):
        """As Overlay's, without rpm's database, which a query changes."""
        return {path: of for path, of in super().changes().items()
                if not path.startswith("/var/lib/rpm")}

    def add_tree(self, name, version=None):
        """Copy the tree; with a version, make its modules empty, so that it builds fast.  Another
        version than ours has modules_of() only."""
        tree = self.path(name)
        shutil.copytree(TOP, tree, symlinks=True, ignore=shutil.ignore_patterns(
            ".git", "out", "build", "__pycache__", "*.ko", "*.mod", "*.mod.c", "*.cmd",
            "Module.symvers", "modules.order", *(("*.o", "*.so") if not version else ("[!c]*.o",))))
        if version:
            self.write(f"{name}/VERSION", f"GL_VERSION ?= {version}\n")
            # Keep each module's first source file, which has the version.
            kbuild = tree / "net/Kbuild"
            text, modules = re.subn(r"^(\w+)-y := (\w+/\w+)\.o(?:.*\\\n)*.*$",
                                    r"\1-y := \2.o", kbuild.read_text(), flags=re.M)
            equal(modules, len(MODULES), "modules in net/Kbuild")
            for ko in MODULES - modules_of(version):
                text = re.sub(rf"^obj-.*\b{ko[:-3]}\.o\n", "", text, flags=re.M)
            kbuild.write_text(text)
            conf = tree / "dkms.conf"
            common = conf.read_text().partition("BUILT_MODULE_NAME[0]")[0]
            conf.write_text(common + "".join(
                f'BUILT_MODULE_NAME[{n}]="{ko[:-3]}"\nBUILT_MODULE_LOCATION[{n}]="net"\n'
                f'DEST_MODULE_LOCATION[{n}]="/updates/dkms"\n'
                for n, ko in enumerate(sorted(modules_of(version)))))
            for source in tree.glob("net/*/*.c"):
                source.unlink()
            for main in re.findall(r"^\w+-y := (\w+/\w+)\.o$", text, re.M):
                self.write(f"{name}/net/{main}.c", NOTHING)

    def add_headers(self, release):
        """Copy the distribution's headers as the headers of another kernel."""
        new = self.path(f"/usr/src/linux-headers-{release}")
        shutil.copytree(HEADERS, new, symlinks=True)
        for name in (".kernelvariables", "include/generated/utsrelease.h"):
            text = (new / name).read_text()
            true(RELEASE in text, f"{name} names the kernel")
            (new / name).write_text(text.replace(RELEASE, release))
        self.path(f"/lib/modules/{release}/build").symlink_to(f"/usr/src/{new.name}")

    def make(self, *args, tree="/tree"):
        """Run make in a tree."""
        return self.run("make", "-s", f"-j{2}", *args, cwd=tree)

    def modules(self):
        """{name: path} of all updated modules below /lib/modules."""
        return {path.name: path for path in self.path("/lib/modules").rglob("*.ko*")
                if "updates" in path.parts}

    def modinfo(self, field, version=VERSION):
        """The values of a field of our modules, which modinfo finds as modprobe does."""
        done = self.run("modinfo", "-k", self.release, "-F", field,
                        *(name.removesuffix(".ko") for name in sorted(modules_of(version))))
        equal((done.returncode, done.stderr), (0, ""), "modinfo")
        return set(done.stdout.splitlines())

    def installed(self, version=VERSION):
        """Fail unless exactly our modules are installed, in this version."""
        equal(set(self.modules()), modules_of(version), "modules")
        equal(self.modinfo("version", version), {version}, "version:")
        equal({line.split()[0] for line in self.modinfo("vermagic", version)}, {self.release},
              "vermagic")

    def tools_work(self):
        """Fail unless tc finds its plugin, and the programs their libraries and BPF programs."""
        done = self.run("tc", "qdisc", "add", "dev", "lo", "root", "color", "rate", "nonsense")
        true("color" in done.stderr and "Unknown qdisc" not in done.stderr,
             f"tc finds its plugin: {done.stderr}")
        for program in ("greenlane", "greenlane-cgroup"):
            ok(self.run(program, "--help"), program)
        equal(sum(self.path(f"{prefix}/lib/greenlane/bpf/cgroup_tlt.bpf.o").is_file()
                  for prefix in ("/usr", "/usr/local")), 1, "BPF programs")

    def as_before(self, what, but="/tree"):
        """Fail unless all files are as before."""
        now = self.changes()
        equal({path for path in {*now, *self.before} if not path.startswith(but)
               and now.get(path) != self.before.get(path)}, set(), f"changed by {what}")

    def refuses(self, pattern, *command):
        """Fail unless a command fails with one such error, and changes no file."""
        done = self.run(*command, cwd="/tree")
        equal((done.returncode, len(done.stderr.splitlines())), (2, 1),
              f"{command}: status and length of {done.stderr!r}")
        true(re.search(pattern, done.stderr), f"{command}: {done.stderr!r} has {pattern}")
        self.as_before(command, but=())


def ok(done, what):
    """Fail unless a command has succeeded; returns its stderr."""
    equal(done.returncode, 0, f"{what}: {done.stderr[-800:]}")
    return done.stderr


@case("without headers: an error with the package to install, and no change")
def no_headers():
    with Host("6.1.0-1-none") as host:
        for target in ("modules", "install", "dkms-install"):
            host.refuses("no headers of kernel 6.1.0-1-none: "
                         "apt-get install linux-headers-6.1.0-1-none", "make", target)
        host.refuses("no kernel headers in /nowhere", "make", "KDIR=/nowhere")


@case("a kernel older than 6.1 is refused")
def too_old():
    with Host(OLD) as host:
        for target in ("modules", "install", "dkms-install"):
            host.refuses(f"kernel {OLD} is not supported: the oldest that is, is 6.1",
                         "make", target)


@case("without dkms: an error")
def no_dkms():
    with Host() as host:
        host.path("/usr/sbin/dkms").unlink()
        host.before = host.changes()
        host.refuses("no dkms: apt-get install dkms", "make", "dkms-install")


@case("DKMS and make support the same kernels")
def same_bounds():
    with Host() as host:
        for release, supported in (("4.19.0", False), ("5.19.17", False), ("6.0.12", False),
                                   ("6.1.0-9-amd64", True), ("6.6.1", True), ("6.12.3", True),
                                   ("6.19.0", True), ("7.0.0-rc1", True), ("7.3.4", True),
                                   ("7.10.1", True), ("10.0.1", True)):
            host.write("/kdir/Makefile", "")
            host.write("/kdir/include/generated/utsrelease.h",
                       f'#define UTS_RELEASE "{release}"\n')
            done = host.run("scripts/install-check", "build", "/kdir", cwd="/tree")
            equal(done.returncode, 0 if supported else 2, f"install-check, {release}")
            equal("newer than 7.3" in done.stderr, release in ("7.10.1", "10.0.1"),
                  f"{release} is newer")
            done = host.run("bash", "-c", ". ./dkms.conf; "
                            "[[ $1 =~ $BUILD_EXCLUSIVE_KERNEL ]]", "bash", release, cwd="/tree")
            equal(done.returncode, 0 if supported else 1, f"dkms.conf, {release}")


@case("the version: VERSION, in a git checkout with the commit; the same in DKMS and modinfo")
def versions():
    with Host() as host:
        def said():
            return ok_out(host.run("scripts/version", cwd="/tree"))

        def ok_out(done):
            ok(done, done.args)
            return done.stdout.strip()

        def git(*args):
            return ok_out(host.run("git", "-c", "user.name=t", "-c", "user.email=t@t.example",
                                   *args, cwd="/tree"))
        equal(said(), VERSION, "without git")
        # The checkout of a parent directory is another project's.
        ok(host.run("git", "init", "-q", "/"), "git init")
        equal(said(), VERSION, "in a directory of another checkout")
        git("init", "-q")
        git("add", "VERSION", "Kbuild", "scripts")
        git("commit", "-q", "-m", "x")
        commit = git("rev-parse", "--short=12", "HEAD")
        equal(said(), f"{VERSION}+1.g{commit}", "a commit")
        ok(host.run("git", "clone", "-q", "--depth=1", "file:///tree", "/shallow"), "clone")
        done = host.run("scripts/install-tarball", "/c", cwd="/shallow")
        true(done.returncode and "a shallow clone" in done.stderr, done.stderr)
        for tag in "a-release", f"v{VERSION}", "z-release":
            git("tag", tag)
        equal(said(), VERSION, "the tag")
        ok(host.run("chown", "-R", "nobody", "/tree"), "chown")
        equal(said(), VERSION, "the tag of another user's tree")
        done = host.run("git", "status", cwd="/tree")
        true("dubious ownership" in done.stderr, f"git alone refuses: {done.stderr}")
        ok(host.run("chown", "-R", "root", "/tree"), "chown")
        balls = [ok_out(host.run("scripts/install-tarball", f"/{n}", cwd="/tree")) for n in "ab"]
        equal(balls, [f"/{n}/greenlane-{VERSION}.tar.gz" for n in "ab"], "tarballs")
        equal(*(overlay.fingerprint(host.path(ball)) for ball in balls), "two tarballs")
        done = host.run("scripts/release", cwd="/tree")
        true(done.returncode and f'no section "{VERSION} (date)"' in done.stderr, done.stderr)
        git("commit", "-q", "--allow-empty", "-m", "y")
        commit = git("rev-parse", "--short=12", "HEAD")
        host.write("/tree/Kbuild", "# changed\n")
        equal(said(), f"{VERSION}+2.g{commit}.dirty", "a change on the second commit")
        for script in ("install-tarball", "release"):
            done = host.run(f"scripts/{script}", *["/c"][:script == "install-tarball"], cwd="/tree")
            true(done.returncode and "changes" in done.stderr, f"{script}: {done.stderr}")
        done = host.run("scripts/install-dkms", "stage", "/staged", cwd="/tree")
        ok(done, "stage")
        conf = host.path("/staged/dkms.conf").read_text()
        true(f'PACKAGE_VERSION="{said()}"\n' in conf, "dkms.conf has it")
        true(f"GL_VERSION ?= {said()}\n" in host.path("/staged/VERSION").read_text(),
             "VERSION, which modinfo gets, has it")


@case("make uninstall removes all files of make install; DESTDIR= installs only below it")
def make_install():
    with Host() as host:
        host.add_tree("/tree-empty", VERSION)

        def make(*args):
            return host.make(*args, tree="/tree-empty")
        # Even if the kernel has KUnit, our KUnit tests are not installed.
        with open(host.path(f"{HEADERS}/include/config/auto.conf"), "a", encoding="ascii") as conf:
            conf.write("CONFIG_KUNIT=m\n")
        host.before = host.changes()
        # A module of an earlier version, in that version's directory
        earlier = f"/lib/modules/{RELEASE}/updates/greenlane/net/ipv4/greenlane.ko"
        host.write(earlier, "")
        said = ok(make("install"), "make install")
        true(not host.path(earlier).exists(), "the earlier module is removed")
        true(not re.search("error|jobserver|bad", said, re.I), said)
        host.installed()
        for name in ("share/man/man8/tc-color.8", "share/man/man8/greenlane-cgroup.8",
                     "include/linux/greenlane.h", "share/doc/greenlane/README.md",
                     "share/doc/greenlane/examples/90-greenlane.conf"):
            true(host.path(f"/usr/local/{name}").is_file(), f"{name} is installed")
        doc = host.path("/usr/local/share/doc/greenlane")
        links = re.findall(r"\]\((\w[^):]*)\)", (doc / "README.md").read_text(encoding="utf-8"))
        true(links, "README links to its pages")
        equal([link for link in links if not (doc / link.partition("#")[0]).is_file()], [],
              "README's dead links")
        host.tools_work()
        ok(host.run("sh", "-ec", SIGN), "signing")
        equal(host.modinfo("signer"), {"greenlane modules"}, "signer")
        present = host.before
        host.before = host.changes()
        host.refuses("greenlane is installed by make install: make uninstall",
                     "make", "dkms-install")
        host.before = present
        equal(ok(make("uninstall"), "make uninstall"), "", "stderr")
        host.as_before("make install, make uninstall")

        # Installed with two prefixes, and removed without PREFIX=
        for prefix in ("/opt/a", "/opt/b"):
            ok(make("install-tools", f"PREFIX={prefix}"), f"make install-tools {prefix}")
            true(host.path(f"{prefix}/sbin/greenlane").is_file(), f"{prefix}/sbin/greenlane")
        host.write("/opt/a/sbin/mine", "")
        ok(make("uninstall"), "make uninstall")
        true(host.path("/opt/a/sbin/mine").is_file(), "a file of another owner stays")
        shutil.rmtree(host.path("/opt/a"))
        host.as_before("make install PREFIX=, make uninstall")

        ok(make("install", "DESTDIR=/dest", "PREFIX=/usr"), "make install DESTDIR=")
        equal({path for path in set(host.changes()) - set(host.before)
               if not path.startswith(("/tree", "/dest"))}, set(), "outside")
        for name in (f"lib/modules/{RELEASE}/updates/greenlane/net/greenlane.ko",
                     "usr/share/man/man8/tc-color.8"):
            true(host.path(f"/dest/{name}").is_file(), name)
        equal(len(list(host.path("/dest/usr/lib").rglob("tc/q_*.so"))), 2, "plugins")


@case("without a tc that prints the directory of its plugins: refused before any change")
def no_tc():
    with Host() as host:
        for path in ("/usr/sbin/tc", "/sbin/tc", "/usr/bin/tc"):
            host.path(path).unlink(missing_ok=True)
        host.before = host.changes()
        for target in ("install", "install-tools"):
            host.refuses("no tc: apt-get install iproute2, or name .* in TCDIR=", "make", target)
        host.write("/usr/local/bin/tc", "#!/bin/sh\nexec /opt/tc \"$@\"\n")
        host.path("/usr/local/bin/tc").chmod(0o755)
        host.before = host.changes()
        for target in ("install", "install-tools"):
            host.refuses("/tc does not print the directory of its plugins", "make", target)
        for words in (("PREFIX=usr",), ("PREFIX=/a b",), ("TCDIR=lib", "PREFIX=/usr")):
            host.refuses("a directory to install in", "make", "install-tools", "TCDIR=/opt/tc", *words)
        host.refuses("dkms-install builds for the kernel in KVER=", "make", "dkms-install",
                     "KDIR=/lib/modules/x/build")
        ok(host.make("uninstall"), "make uninstall of no files")
        host.as_before("make uninstall of no files")
        host.write("/var/lib/greenlane/manifest", "/usr/local/sbin/x\n../../etc/passwd\n")
        done = host.make("uninstall")
        true(done.returncode and "is damaged" in done.stderr, f"a damaged manifest: {done.stderr}")
        host.path("/var/lib/greenlane/manifest").unlink()
        host.path("/var/lib/greenlane").rmdir()
        ok(host.make("tc"), "make tc")
        ok(host.make("install-tools", "TCDIR=/opt/tc/lib"), "make install-tools TCDIR=")
        true(host.path("/opt/tc/lib/q_color.so").is_file(), "the plugin")
        ok(host.make("uninstall"), "make uninstall")
        host.as_before("make install-tools TCDIR=, make uninstall")


@case("DKMS, on a kernel newer than tested: a warning, an upgrade, and complete removal")
def dkms():
    with Host(NEWER) as host:
        host.add_tree("/earlier", "0.0.9")
        host.add_tree("/tree-new", VERSION)
        host.before = host.changes()
        ok(host.make("dkms-install", tree="/earlier"), "dkms-install of 0.0.9")
        host.installed("0.0.9")
        said = ok(host.make("dkms-install", tree="/tree-new"), "dkms-install")
        equal(said.count(f"warning: kernel {NEWER} is newer than 7.3, the newest tested"), 1, said)
        host.installed()
        status = host.run("dkms", "status").stdout.splitlines()
        equal([line.split(",")[0] for line in status], [f"greenlane/{VERSION}"], "dkms status")
        equal([p.name for p in host.path("/usr/src").glob("greenlane-*")], [f"greenlane-{VERSION}"],
              "sources")
        present = host.before
        host.before = host.changes()
        host.refuses("greenlane is installed by DKMS", "make", "install")
        ok(host.make("install-tools"), "make install-tools beside DKMS")
        host.tools_work()
        ok(host.make("uninstall"), "make uninstall")
        host.as_before("make install-tools, make uninstall")
        host.before = present
        equal(ok(host.make("dkms-remove"), "dkms-remove"), "", "stderr")
        host.as_before("dkms-install, dkms-remove")


@case("dkms add accepts a checkout, and builds it without the tests")
def dkms_checkout():
    with Host() as host:
        # A kernel with KUnit
        with open(host.path(f"{HEADERS}/include/config/auto.conf"), "a", encoding="ascii") as conf:
            conf.write("CONFIG_KUNIT=m\n")
        host.add_tree("/tree-checkout", VERSION)
        host.before = host.changes()
        ok(host.run("dkms", "add", ".", cwd="/tree-checkout"), "dkms add")
        ok(host.run("dkms", "install", f"greenlane/{VERSION}", "-k", RELEASE), "dkms install")
        host.installed()
        equal(list(host.path("/var/lib/dkms/greenlane").rglob("*_kunit.ko*")), [], "tests built")
        equal(ok(host.make("dkms-remove"), "dkms-remove"), "", "stderr")
        host.as_before("dkms add, dkms install, dkms-remove")


@case("a newer kernel for which the build fails: an error, and the installed version stays")
def broken():
    with Host(NEWER) as host:
        host.add_tree("/earlier", "0.0.9")
        ok(host.make("dkms-install", tree="/earlier"), "dkms-install of 0.0.9")
        host.write("/tree/include/net/gl_compat.h", "#error this kernel is too new\n")
        clear = f"greenlane {VERSION} does not build for kernel {NEWER}, " \
                "which is newer than 7.3, the newest tested"
        for target in ("modules", "dkms-install"):
            done = host.make(target)
            equal((done.returncode, done.stderr.count(clear)), (2, 1), f"{target}: {done.stderr}")
        host.installed("0.0.9")
        # dkms build, as a kernel's package runs it
        ok(host.run("scripts/install-dkms", "stage", f"/usr/src/greenlane-{VERSION}", cwd="/tree"),
           "stage")
        done = host.run("dkms", "build", f"greenlane/{VERSION}", "-k", NEWER)
        true(done.returncode and done.stderr.count(clear) == 1, f"dkms build: {done.stderr}")
        ok(host.make("dkms-remove"), "dkms-remove")
        equal(host.modules(), {}, "modules")


@case("the packages: reproducible builds, an upgrade, and complete removal")
def packages():
    with Host() as host:
        arch = host.run("dpkg", "--print-architecture").stdout.strip()
        env = {"SOURCE_DATE_EPOCH": "1700000000"}
        built = []
        for _ in range(2):
            ok(host.run("make", "deb", cwd="/tree", env=env), "make deb")
            debs = sorted(host.path("/tree/out").glob("*.deb"))
            built.append([overlay.fingerprint(deb) for deb in debs])
        equal([deb.name for deb in debs],
              [f"greenlane-dkms_{VERSION}_all.deb", f"greenlane-tools_{VERSION}_{arch}.deb"], "packages")
        equal(built[0], built[1], "two builds")
        host.add_tree("/earlier", "0.0.9")
        ok(host.make("deb", tree="/earlier"), "make deb of 0.0.9")
        host.before = host.changes()

        for tree, number in (("/earlier", "0.0.9"), ("/tree", VERSION)):
            done = host.run("sh", "-c", f"dpkg -i --force-depends {tree}/out/*.deb")
            ok(done, f"dpkg -i of {number}: {done.stdout[-500:]}")
            host.installed(number)
            equal({path.parent.name for path in host.modules().values()}, {"dkms"}, "directory")
            equal(len(host.modinfo("signer", number)), 1, "DKMS has signed them")
            log = next(host.path(f"/var/lib/dkms/greenlane/{number}").rglob("make.log")).read_text()
            equal(complaints(log), [], "warnings")
            equal([p.name for p in host.path("/usr/src").glob("greenlane-*")],
                  [f"greenlane-{number}"], "sources")
        equal(ok(host.run("dpkg", "--verify", "greenlane-dkms", "greenlane-tools"), "verify"), "",
              "dpkg --verify")
        true(not list(host.path(f"/usr/src/greenlane-{VERSION}").rglob("*test*")), "no tests")
        host.tools_work()
        done = host.run("sh", "-c", "echo '#include <linux/greenlane.h>\nint x = GREENLANE_INFO;'"
                        " | gcc -x c -c -o /dev/null -")
        ok(done, "a program with our header")
        present = host.before
        host.before = host.changes()
        host.refuses("greenlane is installed by its package", "make", "dkms-install")
        host.refuses("greenlane is installed by DKMS", "make", "install")
        host.refuses("greenlane-tools is installed by its package", "make", "install-tools")
        host.before = present
        ok(host.run("dpkg", "-P", "greenlane-dkms", "greenlane-tools"), "dpkg -P")
        host.as_before("installing the packages and purging them")


def dkms_package(host, version, broken=False):
    """Build the package of a tree with empty modules; returns its path."""
    tree = f"/tree-{version}"
    host.add_tree(tree, version)
    if broken:
        host.write(f"{tree}/net/greenlane/gl_main.c", "#error broken\n")
    ok(host.make("deb", tree=tree), f"make deb of {version}")
    return f"{tree}/out/greenlane-dkms_{version}_all.deb"


def dpkg_install(host, package):
    """Install or upgrade a package."""
    return host.run("dpkg", "-i", "--force-depends", package)


@case("an upgrade that does not build: the installed version stays until one builds")
def broken_upgrade():
    with Host() as host:
        first, second, third = (dkms_package(host, f"0.0.{n}", broken=n == 8) for n in (7, 8, 9))
        host.before = host.changes()
        ok(dpkg_install(host, first), "the first version")
        host.installed("0.0.7")
        for _ in range(2):
            done = dpkg_install(host, second)
            true(done.returncode and "0.0.8 does not build for kernel" in done.stderr
                 and "the installed version stays" in done.stderr and "#error broken" in done.stderr,
                 f"dpkg -i of the broken version: {done.returncode}, {done.stderr}")
            host.installed("0.0.7")
            status = host.run("dkms", "status").stdout.splitlines()
            equal([(line.split(",")[0], line.split(": ")[1]) for line in status],
                  [("greenlane/0.0.7", "installed")], "dkms status")
        # Its sources are complete: DKMS builds it again, as for a new kernel.
        for words in (("remove", "--all"), ("add",), ("install", "-k", RELEASE)):
            ok(host.run("dkms", words[0], "greenlane/0.0.7", *words[1:]), f"dkms {words[0]}")
        host.installed("0.0.7")
        done = dpkg_install(host, third)
        ok(done, f"dpkg -i of a version that builds: {done.stdout[-500:]}")
        host.installed("0.0.9")
        equal([p.name for p in host.path("/usr/src").glob("greenlane-*")], ["greenlane-0.0.9"],
              "sources")
        # Purging works in the broken state too.
        done = dpkg_install(host, second)
        true(done.returncode, "the broken version again")
        host.installed("0.0.9")
        ok(host.run("dpkg", "-P", "greenlane-dkms"), "dpkg -P")
        host.as_before("the upgrades, and purging")


@case("the rpm packages: an upgrade replaces the modules if it builds, else none; complete removal")
def rpm_packages():
    with Host() as host:
        host.write("/etc/rpm/macros", "%_dbpath /var/lib/rpm\n")      # Debian has it in $HOME
        ok(host.run("rpm", "--initdb"), "rpm --initdb")
        host.path("/usr/lib64/tc").mkdir(parents=True)      # iproute-tc's
        # The layout of Fedora's kernel-devel
        host.path("/usr/src/kernels").mkdir()
        build = host.path(f"/lib/modules/{RELEASE}/build")
        build.unlink()
        host.path(f"/usr/src/kernels/{RELEASE}").symlink_to(HEADERS)
        build.symlink_to(f"/usr/src/kernels/{RELEASE}")
        packages = []
        for number in (7, 8, 9):
            tree = f"/tree-0.0.{number}"
            host.add_tree(tree, f"0.0.{number}")
            if number == 8:
                host.write(f"{tree}/net/greenlane/gl_main.c", "#error broken\n")
            built = ok_fingerprints(host, tree)
            if number == 7:
                equal(ok_fingerprints(host, tree), built, "two builds")
            packages.append(f"{tree}/out/greenlane-dkms-0.0.{number}-1.noarch.rpm")
        tools = str(next(host.path("/tree-0.0.9/out").glob("greenlane-tools-*.rpm")))
        tools = "/tree-0.0.9/out/" + tools.rpartition("/")[2]
        before = host.before = host.changes()

        ok(host.run("rpm", "-i", "--nodeps", packages[0]), "rpm -i")
        host.installed("0.0.7")
        done = host.run("rpm", "-U", "--nodeps", packages[1])
        true("0.0.8 does not build for kernel" in done.stderr, f"rpm -U of a broken one: {done.stderr}")
        host.installed("0.0.7")
        ok(host.run("dkms", "build", "greenlane/0.0.7", "-k", RELEASE, "--force"), "its sources stay")
        ok(host.run("rpm", "-U", "--nodeps", packages[2]), "rpm -U")
        host.installed("0.0.9")
        equal([p.name for p in host.path("/usr/src").glob("greenlane-*")], ["greenlane-0.0.9"],
              "sources")
        ok(host.run("rpm", "-i", "--nodeps", tools), "rpm -i of the tools")
        for program in ("greenlane", "greenlane-cgroup"):
            ok(host.run(program, "--help"), program)
        host.before = host.changes()
        host.refuses("greenlane is installed by its package", "make", "dkms-install")
        ok(host.run("rpm", "-e", "greenlane-dkms", "greenlane-tools"), "rpm -e")
        host.before = before
        host.as_before("installing the packages and removing them")


def ok_fingerprints(host, tree):
    """make rpm; returns the packages' fingerprints."""
    ok(host.run("make", "rpm", cwd=tree, env={"SOURCE_DATE_EPOCH": "1700000000"}), "make rpm")
    return [overlay.fingerprint(path) for path in sorted(host.path(f"{tree}/out").glob("*.rpm"))]


def add_kernel(host, release):
    """Add another kernel, with its headers."""
    host.path(f"/lib/modules/{release}").mkdir()
    host.add_headers(release)
    for name in ("order", "builtin", "builtin.modinfo"):
        host.write(f"/lib/modules/{release}/modules.{name}", "")
    host.run("depmod", release)


def dkms_says(host):
    """dkms status, as {(version, kernel): state}."""
    lines = host.run("dkms", "status").stdout.splitlines()
    return {(line.split(",")[0].partition("/")[2], line.split(", ")[1]): line.split(": ")[1]
            for line in lines}


@case("the package with two kernels: an upgrade replaces both or neither; reinstalling loses no"
      " module; a kernel without headers keeps its modules; an unpacked package can be purged")
def two_kernels():
    with Host() as host:
        add_kernel(host, NEWER)
        first, broken, third, fourth = (dkms_package(host, f"0.0.{n}", broken=n == 8)
                                        for n in (7, 8, 9, 10))
        host.before = host.changes()

        def both(version):
            equal(dkms_says(host), {(version, kernel): "installed" for kernel in (RELEASE, NEWER)},
                  "dkms status")
            equal(len(list(host.path("/lib/modules").rglob("greenlane.ko*"))), 2, "greenlane.ko")
        ok(dpkg_install(host, first), "the first version")
        ok(host.run("dkms", "install", "greenlane/0.0.7", "-k", NEWER), "for the other kernel")
        both("0.0.7")
        ok(dpkg_install(host, first), "the same version again")
        both("0.0.7")
        true(dpkg_install(host, broken).returncode, "a version that does not build")
        both("0.0.7")
        done = dpkg_install(host, third)
        ok(done, f"an upgrade: {done.stdout[-300:]}")
        both("0.0.9")

        # The same version with changed sources: replaces the old one if it builds.
        for bad in (True, False):
            host.write("/tree-0.0.9/net/greenlane/gl_main.c",
                       "#error broken\n" if bad else f"{NOTHING}typedef int something;\n")
            ok(host.make("deb", tree="/tree-0.0.9"), "make deb again")
            equal(bool(dpkg_install(host, third).returncode), bad, "status")
            both("0.0.9")
            ok(host.run("dkms", "build", "greenlane/0.0.9", "-k", NEWER, "--force"), "dkms build")
            ok(host.run("dkms", "install", "greenlane/0.0.9", "-k", NEWER, "--force"), "dkms install")

        build = host.path(f"/lib/modules/{NEWER}/build")
        target = build.readlink()
        build.unlink()
        done = dpkg_install(host, fourth)
        true(not done.returncode and f"kernel {NEWER} has no headers" in done.stderr, done.stderr)
        equal(dkms_says(host), {("0.0.10", RELEASE): "installed", ("0.0.9", NEWER): "installed"},
              "dkms status")
        build.symlink_to(target)
        ok(host.run("dpkg", "--unpack", "--force-depends", first), "dpkg --unpack")
        done = host.make("dkms-remove")
        true(done.returncode and "apt-get purge greenlane-dkms" in done.stderr, done.stderr)
        ok(host.run("dpkg", "-P", "greenlane-dkms"), "dpkg -P")
        host.as_before("the packages, and purging")


@case("make dkms-install with two kernels: an upgrade builds for both, a broken one changes none;"
      " a kernel with other headers, or none, costs the other one no module")
def dkms_two_kernels():
    with Host() as host:
        add_kernel(host, NEWER)
        for version in ("0.0.7", "0.0.9"):
            host.add_tree(f"/tree-{version}", version)
        host.before = host.changes()
        ok(host.make("dkms-install", tree="/tree-0.0.7"), "dkms-install")

        # A second kernel, for which it does not build: the first one keeps its modules.
        header = host.path(f"/usr/src/linux-headers-{NEWER}/include/generated/autoconf.h")
        text = header.read_text()
        header.write_text(f"{text}#error broken\n")
        done = host.make("dkms-install", f"KVER={NEWER}", tree="/tree-0.0.7")
        true(done.returncode and "the version before is unchanged" in done.stderr, done.stderr)
        equal(dkms_says(host), {("0.0.7", RELEASE): "installed"}, "dkms status")
        header.write_text(text)
        ok(host.run("dkms", "install", "greenlane/0.0.7", "-k", NEWER), "for the other kernel")

        # A kernel without headers keeps them, too.
        build = host.path(f"/lib/modules/{NEWER}/build")
        target = build.readlink()
        build.unlink()
        done = host.make("dkms-install", tree="/tree-0.0.7")
        true(not done.returncode and f"kernel {NEWER} has no headers" in done.stderr, done.stderr)
        equal(dkms_says(host), {("0.0.7", kernel): "installed" for kernel in (RELEASE, NEWER)},
              "dkms status")
        build.symlink_to(target)

        host.write("/tree-0.0.7/net/greenlane/gl_main.c", "#error broken\n")
        done = host.make("dkms-install", tree="/tree-0.0.7")
        true(done.returncode and "the version before is unchanged" in done.stderr, done.stderr)
        equal(dkms_says(host), {("0.0.7", kernel): "installed" for kernel in (RELEASE, NEWER)},
              "dkms status")
        equal(len(list(host.path("/lib/modules").rglob("greenlane.ko*"))), 2, "greenlane.ko")
        ok(host.make("dkms-install", tree="/tree-0.0.9"), "dkms-install of the next")
        equal(dkms_says(host), {("0.0.9", kernel): "installed" for kernel in (RELEASE, NEWER)},
              "dkms status")
        ok(host.make("dkms-remove"), "dkms-remove")
        host.as_before("dkms-install, dkms-remove")


@case("the package refuses to install over modules of make install and make dkms-install")
def package_conflict():
    with Host() as host:
        ok(host.make("deb"), "make deb")
        for there, pattern in ((f"/lib/modules/{RELEASE}/updates/greenlane", "make uninstall"),
                               ("/var/lib/dkms/greenlane", "make dkms-remove")):
            host.path(there).mkdir(parents=True)
            done = host.run("sh", "-c", "dpkg -i --force-depends /tree/out/greenlane-dkms*.deb")
            true(done.returncode and pattern in done.stderr,
                 f"dpkg -i prints {pattern}: {done.stderr}")
            host.path(there).rmdir()
            equal(list(host.path("/usr/src").glob("greenlane-*")), [], "unpacked sources")


if __name__ == "__main__":
    if subprocess.run(["id", "-u"], capture_output=True, text=True, check=True).stdout != "0\n":
        sys.exit("guest_install.py: only root can make an overlay")
    overlay.isolate()
    tap.main()

# SPDX-License-Identifier: GPL-2.0
# greenlane: out-of-tree kernel modules.  `make help` lists what there is.
#
# KDIR= and ARCH= choose the kernel that `make` builds for.

KDIR ?= /lib/modules/$(shell uname -r)/build
# The kernel that DKMS builds for.
KVER ?= $(shell uname -r)

# Where things go; DESTDIR is put before all of it.
PREFIX ?= /usr/local
INSTALL_MOD_PATH ?= $(DESTDIR)
export DESTDIR PREFIX DOCDIR TCDIR
export PATH := $(PATH):/usr/sbin:/sbin

# $(call require,WHAT,KDIR): go on, or stop with one line and change nothing
require = $(eval said := $(shell scripts/install-check $(1) $(2) 2>&1))$(if \
	$(filter-out 0,$(.SHELLSTATUS)),$(error $(said)),$(if $(said),$(warning $(said))))

# Before 4.4, make does not export variables to what $(shell) runs.
require_files = $(eval said := $(shell PREFIX='$(PREFIX)' DOCDIR='$(DOCDIR)' TCDIR='$(TCDIR)' \
	scripts/install-files check 2>&1))$(if $(filter-out 0,$(.SHELLSTATUS)),$(error $(said)))

# Without what only tests load.
kbuild = $(MAKE) -C $(KDIR) M=$(CURDIR) GL_VERSION=$(shell scripts/version) GL_TESTS=n $(llvm)

# A kernel that clang has built needs modules of clang's.  Debian's headers name a gcc.
llvm = $(if $(shell grep -s '^CONFIG_CC_IS_CLANG=y' $(KDIR)/.config),LLVM=1 CC=clang)

# Installed as they are, also where the kernel compresses its own: a signature goes to the end
# of a module that is not compressed (install.rst, Secure Boot).
plain = $(addprefix CONFIG_MODULE_COMPRESS,= _GZIP= _XZ= _ZSTD= _ALL=)

# modules_install signs with the kernel's key, which a distribution keeps to itself.
sign = $(if $(shell cd $(KDIR) && \
	ls -d $$(sed -n 's/^CONFIG_MODULE_SIG_KEY="\(.*\)"$$/\1/p' .config) 2>/dev/null),,CONFIG_MODULE_SIG_ALL=)

# The kernels that `make install` has installed modules for, all of them.
installed = $(wildcard $(INSTALL_MOD_PATH)/lib/modules/*/updates/greenlane)
depmod = depmod $(addprefix -b ,$(INSTALL_MOD_PATH))

.PHONY: modules tc bpf install install-modules install-tools uninstall dkms-install dkms-remove deb \
	rpm tarball release demo figures gallery check check-all check-debug check-smp-debug lint coverage bench clean help

modules:
	$(call require,build,$(KDIR))
	+@$(kbuild) modules || { scripts/install-check failed $(KDIR); exit 2; }

tc:
	$(MAKE) -C tools/tc

bpf:
	@$(MAKE) -C tools/bpf || \
		echo 'warning: no program for greenlane-cgroup: apt-get install gcc-bpf' >&2

install:
	$(call require,install,$(KDIR))
	$(call require_files)
	$(MAKE) modules
	$(MAKE) install-modules install-tools

# An earlier installation has its modules in net/ipv4 and net/sched: modprobe might take those.
install-modules:
	+$(kbuild) INSTALL_MOD_PATH=$(INSTALL_MOD_PATH) INSTALL_MOD_DIR=updates/greenlane \
		INSTALL_MOD_STRIP=1 $(sign) $(plain) modules_install
	for dir in $(INSTALL_MOD_PATH)/lib/modules/*/updates/greenlane; do \
		{ ! ls "$$dir"/net/greenlane.ko* >/dev/null 2>&1 || \
			rm -rf "$$dir/net/ipv4" "$$dir/net/sched"; } && \
		$(depmod) "$$(basename "$${dir%/updates/*}")" || exit; \
	done

install-tools:
	$(if $(DESTDIR),,$(call require,tools))
	$(call require_files)
	$(MAKE) tc bpf
	scripts/install-files put

uninstall:
	for dir in $(installed); do \
		rm -r "$$dir" && rmdir --ignore-fail-on-non-empty "$${dir%/*}" && \
		$(depmod) "$$(basename "$${dir%/updates/*}")" || exit; \
	done
	scripts/install-files drop

dkms-install:
	$(if $(filter command line environment,$(origin KDIR)),$(error \
		dkms-install builds for the kernel in KVER=; it takes no KDIR=))
	$(call require,dkms,/lib/modules/$(KVER)/build)
	scripts/install-dkms install $(KVER)

dkms-remove:
	scripts/install-dkms remove

deb: tc bpf
	scripts/install-deb out

rpm: tc bpf
	scripts/install-rpm out

tarball:
	scripts/install-tarball out

demo release:
	scripts/$@

# ONLY= are parts of figures' names, SCALE= is small or large.  STRICT=1 fails if a verdict is
# worse than the recorded one, RECORD=1 records them.
figures:
	scripts/setup --figures
	scripts/figures $(addprefix --scale ,$(SCALE)) $(if $(STRICT),--strict) $(if $(RECORD),--record) $(ONLY)

# The pictures of results.rst, with their verdicts: a test requires both of one version.
GALLERY := tlt-fig5 tlt-fig12 aeolus-fig11 dart-fig11
gallery:
	$(MAKE) figures ONLY="$(GALLERY)" SCALE=small RECORD=1
	cp $(GALLERY:%=build/figures/small/%.svg) Documentation/gallery

# Programs in Python, which is one of the things that the setup brings.
check check-debug check-smp-debug coverage bench:
	scripts/setup --check
	scripts/$@ $(addprefix --kernel ,$(KERNEL))

check-all:
	scripts/setup --check
	scripts/check --all

lint:
	scripts/setup --lint
	scripts/lint $(addprefix --kernel ,$(KERNEL))

clean:
	$(MAKE) -C $(KDIR) M=$(CURDIR) clean
	$(MAKE) -C tools/tc clean

help:
	@echo 'make               the modules, for the kernel in KDIR= (and ARCH=)'
	@echo 'make tc            tools/tc/q_*.so, the plugins for the stock tc'
	@echo 'make install       both, and the tools: for this host (PREFIX=, DESTDIR=)'
	@echo 'make uninstall     what that has installed, for every kernel'
	@echo 'make dkms-install  the modules, built again for each new kernel (KVER=)'
	@echo 'make dkms-remove   what that has installed'
	@echo 'make install-tools all but the modules, beside DKMS; make uninstall removes it'
	@echo 'make deb           packages of both, greenlane-dkms and greenlane-tools, in out/'
	@echo 'make rpm           the same for rpm'
	@echo 'make tarball       the sources of the commit, in out/'
	@echo 'make release       the tarball and the packages of a tagged version'
	@echo
	@echo 'make demo          the incast, TLT against its base, in virtual time'
	@echo 'make figures       the figures of the papers, ours beside them (ONLY=tlt-fig5 SCALE=large STRICT=1)'
	@echo 'make check         every test; ends with "N passed, N failed" (KERNEL=6.12)'
	@echo 'make check-all     every test on every kernel'
	@echo 'make check-debug   only those on the KASAN + lockdep + kmemleak kernel'
	@echo 'make check-smp-debug  the same on two processors, and KCSAN'
	@echo 'make lint          sparse, checkpatch, W=1, coccinelle, shellcheck, pyflakes'
	@echo 'make coverage      which lines the tests run'
	@echo 'make bench         speed and memory, as ratios'

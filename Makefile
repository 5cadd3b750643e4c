# SPDX-License-Identifier: GPL-2.0
# greenlane: out-of-tree kernel modules.  `make help` lists what there is.
#
# KDIR= and ARCH= choose the kernel that `make` builds for.

KDIR ?= /lib/modules/$(shell uname -r)/build

.PHONY: modules tc demo check check-debug bench clean help

modules:
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules

tc:
	$(MAKE) -C tools/tc

demo:
	scripts/$@

# Programs in Python, which is one of the things that the setup brings.
check check-debug bench:
	scripts/setup --check
	scripts/$@

clean:
	$(MAKE) -C $(KDIR) M=$(CURDIR) clean
	$(MAKE) -C tools/tc clean

help:
	@echo 'make              the modules, for the kernel in KDIR= (and ARCH=)'
	@echo 'make tc           tools/tc/q_color.so, the plugin for the stock tc'
	@echo 'make demo         the incast, TLT against its base, in virtual time'
	@echo 'make check        every test on every kernel; ends with "N passed, N failed"'
	@echo 'make check-debug  only those on the KASAN + lockdep + kmemleak kernel'
	@echo 'make bench        speed and memory, as ratios'

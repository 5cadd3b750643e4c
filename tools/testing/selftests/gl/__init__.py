# SPDX-License-Identifier: GPL-2.0
"""What greenlane's selftests share: TAP output, namespaces, a programmable wire."""

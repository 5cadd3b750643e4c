# SPDX-License-Identifier: GPL-2.0
"""A socket that a process owns for a while (tools/testing/modules/gl_hold.c)."""
import os
import subprocess
import threading


def hold(s, milliseconds):
    """Own the socket from now on; returns a thread to join."""
    if not os.path.exists("/proc/gl_hold"):
        subprocess.run(["insmod", f"{os.environ['GL_MODDIR']}/tools/testing/modules/gl_hold.ko"],
                       check=True)

    def write():
        fd = os.open("/proc/gl_hold", os.O_WRONLY)
        os.write(fd, f"{s.fileno()} {milliseconds}".encode())
        os.close(fd)
    thread = threading.Thread(target=write)
    thread.start()
    return thread

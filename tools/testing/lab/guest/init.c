// SPDX-License-Identifier: GPL-2.0
/*
 * The guest's init: process 1 of a User-Mode Linux kernel, or the program that
 * virtme-ng runs in a virtual machine.  It protects the host's file system by
 * an overlay, runs one command, reports its exit status and powers the guest
 * off.
 *
 *	host's root, read only (hostfs, 9p with a cache) --+
 *	                                                   +--> overlay: the guest's /
 *	tmpfs, discarded ----------------------------------+
 *	GL_OUT on the host (hostfs, 9p) -----------> the same path, writable
 *
 * It is a C program because starting a program in a guest costs tens of
 * milliseconds, and a shell would start dozens.
 *
 * The program that starts the guest writes the files "argv", "env" and "cwd", with
 * NUL after every string, to a directory, which is the argument (or the environment
 * variable GLRUN, from User-Mode Linux's command line).  init writes "status" there,
 * rows of "key value".
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define STAGE "/mnt"		/* mount point on which the new root is prepared */
#define KMEMLEAK "/sys/kernel/debug/kmemleak"

static const char *run_dir;
static bool virtme;		/* a virtual machine, not User-Mode Linux */

static void power_off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	_exit(1);
}

/*
 * A message for the kernel's log.  One write() is one message; stdio would try
 * to seek first, which the log refuses.
 */
static void say(const char *fmt, ...)
{
	char text[512];
	va_list ap;
	int fd, len;

	va_start(ap, fmt);
	len = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (len >= (int)sizeof(text))
		len = sizeof(text) - 1;
	fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	if (write(fd < 0 ? 1 : fd, text, len) < 0)
		perror(text);
	close(fd);
}

/* scripts/guest treats this message as a failure of the guest. */
#define complain(fmt, ...) say("greenlane-init: " fmt, ##__VA_ARGS__)

static void must(int err, const char *what)
{
	if (err >= 0)
		return;
	complain("%s: %s", what, strerror(errno));
	power_off();
}

static void fs(const char *type, const char *dir, const char *data)
{
	mkdir(dir, 0755);
	if (mount(type, dir, type, 0, data))
		complain("mount %s on %s: %s", type, dir, strerror(errno));
}

/* Read a file of NUL-terminated strings into an array that ends with NULL. */
static char **strings_of(const char *name)
{
	size_t len = 0, room = 4096, n = 0, i;
	char path[4096], *text, **list;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", run_dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	must(fd, path);
	text = malloc(room);
	while ((got = read(fd, text + len, room - len)) > 0) {
		len += got;
		if (len == room)
			text = realloc(text, room *= 2);
	}
	close(fd);
	for (i = 0; i < len; i++)
		n += !text[i];
	list = calloc(n + 1, sizeof(*list));
	for (i = 0, n = 0; i < len; i += strlen(text + i) + 1)
		list[n++] = text + i;
	return list;
}

static void bind_mount(int dir, const char *path)
{
	char source[32];

	snprintf(source, sizeof(source), "/proc/self/fd/%d", dir);
	if (mount(source, path, NULL, MS_BIND, NULL))
		complain("bind %s: %s", path, strerror(errno));
	close(dir);
}

/* Make the overlay / and unmount the old root; keep the directories shared with the host. */
static void enter_new_root(const char *out)
{
	const char *layers = "lowerdir=/,upperdir=" STAGE "/upper,workdir=" STAGE "/work";
	int shared[2] = { -1, -1 };

	if (virtme) {
		must(unshare(CLONE_NEWNS), "unshare");
		must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "private");
		shared[0] = open(run_dir, O_PATH | O_CLOEXEC);
		must(shared[0], run_dir);
		shared[1] = open(out, O_PATH | O_CLOEXEC);
		must(shared[1], out);
	}
	must(mount("tmpfs", STAGE, "tmpfs", 0, "mode=755"), "tmpfs");
	must(mkdir(STAGE "/upper", 0755), "upper");
	must(mkdir(STAGE "/work", 0755), "work");
	must(mkdir(STAGE "/root", 0755), "root");
	if (virtme) {
		/*
		 * virtme-ng mounts its root without a cache: each start of Python would request
		 * each page of it from the host.
		 */
		must(mkdir(STAGE "/lower", 0755), "lower");
		must(mount("greenlane.root", STAGE "/lower", "9p", MS_RDONLY,
			   "trans=virtio,version=9p2000.L,access=any,msize=524288,cache=loose"),
		     "greenlane.root");
		layers = "lowerdir=" STAGE "/lower,upperdir=" STAGE "/upper,workdir=" STAGE "/work";
	}
	must(mount("overlay", STAGE "/root", "overlay", 0, layers), "overlay");
	must(chdir(STAGE "/root"), "chdir");
	if (virtme) {
		bind_mount(shared[0], run_dir + 1);
		bind_mount(shared[1], out + 1);
	}
	must(syscall(SYS_pivot_root, ".", "mnt"), "pivot_root");
	must(chdir("/"), "chdir /");
	must(umount2("/mnt", MNT_DETACH), "umount");
	if (!virtme &&
	    (mount("hostfs", run_dir, "hostfs", 0, run_dir) ||
	     mount("hostfs", out, "hostfs", 0, out)))
		complain("hostfs: %s", strerror(errno));
}

/* Mount the modules of a kernel that is not installed on the host. */
static void kernel_modules(const char *from)
{
	struct utsname uts;
	char path[128];

	if (!from || !*from)
		return;
	uname(&uts);
	snprintf(path, sizeof(path), "/lib/modules/%s", uts.release);
	mkdir("/lib/modules", 0755);
	mkdir(path, 0755);
	if (mount(from, path, NULL, MS_BIND, NULL))
		complain("bind %s: %s", path, strerror(errno));
}

static void mount_all(void)
{
	fs("proc", "/proc", NULL);
	fs("sysfs", "/sys", NULL);
	fs("devtmpfs", "/dev", NULL);
	fs("devpts", "/dev/pts", "ptmxmode=666");
	fs("tmpfs", "/dev/shm", NULL);
	fs("tmpfs", "/run", "mode=755");
	fs("debugfs", "/sys/kernel/debug", NULL);
	mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
	mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, NULL);
	mkdir("/run/netns", 0755);
	symlink("/proc/self/fd", "/dev/fd");
	symlink("/proc/self/fd/0", "/dev/stdin");
	symlink("/proc/self/fd/1", "/dev/stdout");
	symlink("/proc/self/fd/2", "/dev/stderr");
}

static void loopback_up(void)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &ifr))
		complain("lo: %s", strerror(errno));
	close(fd);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		complain("%s: %s", path, strerror(errno));
	close(fd);
}

/* Open the port of this name; udev would have made a link, but may not run. */
static int virtio_port(const char *wanted)
{
	static const char dir[] = "/sys/class/virtio-ports";
	char path[300], name[64];
	struct dirent *entry;
	int fd = -1, file;
	DIR *ports;

	ports = opendir(dir);
	while (ports && fd < 0 && (entry = readdir(ports))) {
		memset(name, 0, sizeof(name));
		snprintf(path, sizeof(path), "%s/%s/name", dir, entry->d_name);
		file = open(path, O_RDONLY | O_CLOEXEC);
		if (file < 0 || read(file, name, sizeof(name) - 1) < 0)
			name[0] = 0;
		close(file);
		name[strcspn(name, "\n")] = 0;
		if (strcmp(name, wanted))
			continue;
		snprintf(path, sizeof(path), "/dev/%s", entry->d_name);
		fd = open(path, O_WRONLY | O_CLOEXEC);
	}
	must(fd, wanted);
	return fd;
}

/* Open a console in raw mode, which does not change bytes. */
static int raw_console(const char *path)
{
	struct termios t;
	int fd = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);

	must(fd, path);
	tcgetattr(fd, &t);
	cfmakeraw(&t);
	tcsetattr(fd, TCSANOW, &t);
	return fd;
}

static int run(char **argv, int out, int err)
{
	int status, null;
	pid_t child, pid;

	child = fork();
	must(child, "fork");
	if (!child) {
		setsid();
		null = open("/dev/null", O_RDONLY);
		dup2(null, 0);
		dup2(out, 1);
		dup2(err, 2);
		execvp(argv[0], argv);
		dprintf(2, "%s: %s\n", argv[0], strerror(errno));
		_exit(errno == ENOENT ? 127 : 126);
	}
	do {
		pid = waitpid(-1, &status, 0);
	} while (pid != child && (pid > 0 || errno == EINTR));
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
				     WEXITSTATUS(status);
}

/*
 * An object must be five seconds old (of virtual time, mostly) before kmemleak
 * reports it, and a scan may miss a pointer that is being moved: scan twice.
 */
static void look_for_leaks(void)
{
	char text[4096];
	ssize_t got;
	int fd;

	fd = open(KMEMLEAK, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	write_file(KMEMLEAK, "scan");
	sleep(6);
	write_file(KMEMLEAK, "scan");
	while ((got = read(fd, text, sizeof(text) - 1)) > 0) {
		char *line, *save;

		text[got] = 0;
		for (line = strtok_r(text, "\n", &save); line;
		     line = strtok_r(NULL, "\n", &save))
			say("kmemleak: %s", line);
	}
	close(fd);
}

static long number_in(const char *path)
{
	long n = 0;
	FILE *f = fopen(path, "r");

	if (!f || fscanf(f, "%ld", &n) != 1)
		n = 0;
	if (f)
		fclose(f);
	return n;
}

static void report(int status)
{
	struct timespec now;
	char path[4096];
	FILE *f;

	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(path, sizeof(path), "%s/status", run_dir);
	f = fopen(path, "w");
	if (!f) {
		complain("%s: %s", path, strerror(errno));
		return;
	}
	fprintf(f, "exit %d\ntainted %ld\nclock %ld.%09ld\n", status,
		number_in("/proc/sys/kernel/tainted"), now.tv_sec, now.tv_nsec);
	fclose(f);
}

int main(int argc, char **argv_of_init)
{
	char **argv, **env, **where;
	int out, err, i, status;

	virtme = argc > 1;
	run_dir = virtme ? argv_of_init[1] : getenv("GLRUN");
	if (!run_dir)
		run_dir = "/";
	argv = strings_of("argv");
	env = strings_of("env");
	where = strings_of("cwd");

	clearenv();
	for (i = 0; env[i]; i++)
		putenv(env[i]);
	enter_new_root(getenv("GL_OUT"));
	mount_all();
	kernel_modules(getenv("GL_KERNEL_MODULES"));
	loopback_up();
	write_file("/proc/sys/kernel/hostname", "guest");
	/* virtme-ng lowers the console's log level. */
	write_file("/proc/sys/kernel/printk", "8");
	out = virtme ? virtio_port("greenlane.stdout") : raw_console("/dev/tty1");
	err = virtme ? virtio_port("greenlane.stderr") : raw_console("/dev/tty2");
	if (chdir(where[0]))
		complain("%s: %s", where[0], strerror(errno));

	status = run(argv, out, err);
	look_for_leaks();
	report(status);
	power_off();
}

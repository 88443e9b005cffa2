/* Preloaded into a broker (LD_PRELOAD) to play a bad disk, and a wrong clock. See support/faulty_disk.py.

   HEADRACE_SYNCED  a file of (inode, size) pairs: how long each file was at its last successful sync. What lies behind
                    that would be lost with the power.
   HEADRACE_FULL    while this file exists, regular files take nothing more: "No space left on device".
   HEADRACE_BROKEN  while this file exists, syncs fail.
   HEADRACE_CLOCK   so many seconds are added to the time of day. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define ROWS 65536

struct row {
    uint64_t inode;
    uint64_t size;
};

static struct row *rows;

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("HEADRACE_SYNCED");
    int file = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (file < 0 || ftruncate(file, ROWS * sizeof(struct row)) != 0) return;
    void *mapped = mmap(NULL, ROWS * sizeof(struct row), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) rows = mapped;
    close(file);
}

static int is_told(const char *name) {
    const char *path = getenv(name);
    return path && access(path, F_OK) == 0;
}

static int is_regular(int file) {
    struct stat found;
    return fstat(file, &found) == 0 && S_ISREG(found.st_mode);
}

static void note_size(const struct stat *found, off_t size) {
    for (int index = 0; rows && index < ROWS; index++) {
        if (rows[index].inode == found->st_ino || rows[index].inode == 0) {
            rows[index].size = (uint64_t)size;
            rows[index].inode = found->st_ino;
            break;
        }
    }
}

static int sync_with(const char *name, int file) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    struct stat before;
    int is_known = fstat(file, &before) == 0 && S_ISREG(before.st_mode);
    if (is_known && is_told("HEADRACE_BROKEN")) {
        errno = EIO;
        return -1;
    }
    int result = real(file);
    if (result == 0 && is_known) note_size(&before, before.st_size);
    return result;
}

/* A file that is made anew may have the number of one that is gone; nothing of it is synced. */
static int open_with(const char *name, int folder, const char *path, int flags, mode_t mode) {
    int (*real)(int, const char *, int, ...) = (int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, name);
    int file = real(folder, path, flags, mode);
    struct stat found;
    if (file >= 0 && (flags & O_TRUNC) && fstat(file, &found) == 0 && S_ISREG(found.st_mode)) note_size(&found, 0);
    return file;
}

int openat(int folder, const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = (flags & O_CREAT) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return open_with("openat", folder, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = (flags & O_CREAT) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return open_with("openat64", folder, path, flags, mode);
}

int fdatasync(int file) { return sync_with("fdatasync", file); }

int fsync(int file) { return sync_with("fsync", file); }

static ssize_t really_write(int file, const void *data, size_t size) {
    ssize_t (*real)(int, const void *, size_t) = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    return real(file, data, size);
}

ssize_t write(int file, const void *data, size_t size) {
    if (is_regular(file) && is_told("HEADRACE_FULL")) {
        errno = ENOSPC;
        return -1;
    }
    return really_write(file, data, size);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    ssize_t (*real)(int, const struct iovec *, int) =
        (ssize_t (*)(int, const struct iovec *, int))dlsym(RTLD_NEXT, "writev");
    if (is_regular(file) && is_told("HEADRACE_FULL")) {
        if (count > 1 && parts[0].iov_len > 10) return really_write(file, parts[0].iov_base, 10); /* A little still */
        errno = ENOSPC; /* fits, the rest does not. */
        return -1;
    }
    return real(file, parts, count);
}

int clock_gettime(clockid_t which, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(which, now);
    const char *seconds = which == CLOCK_REALTIME ? getenv("HEADRACE_CLOCK") : NULL;
    if (result == 0 && seconds) now->tv_sec += atol(seconds);
    return result;
}

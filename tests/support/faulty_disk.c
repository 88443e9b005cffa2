/* Preloaded into a broker (LD_PRELOAD) to play a bad disk. See support/faulty_disk.py.

   HEADRACE_SYNCED  a file of (inode, size) pairs: how long each file was at its last successful sync. What lies behind
                    that would be lost with the power.
   HEADRACE_FULL    while this file exists, regular files take nothing more: "No space left on device".
   HEADRACE_BROKEN  while this file exists, syncs fail. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
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

static int sync_with(const char *name, int file) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    struct stat before;
    int is_known = fstat(file, &before) == 0 && S_ISREG(before.st_mode);
    if (is_known && is_told("HEADRACE_BROKEN")) {
        errno = EIO;
        return -1;
    }
    int result = real(file);
    if (result == 0 && is_known && rows) {
        for (int index = 0; index < ROWS; index++) {
            if (rows[index].inode == before.st_ino || rows[index].inode == 0) {
                rows[index].size = (uint64_t)before.st_size;
                rows[index].inode = before.st_ino;
                break;
            }
        }
    }
    return result;
}

int fdatasync(int file) { return sync_with("fdatasync", file); }

int fsync(int file) { return sync_with("fsync", file); }

ssize_t writev(int file, const struct iovec *parts, int count) {
    ssize_t (*real)(int, const struct iovec *, int) =
        (ssize_t (*)(int, const struct iovec *, int))dlsym(RTLD_NEXT, "writev");
    if (is_regular(file) && is_told("HEADRACE_FULL")) {
        if (count > 1 && parts[0].iov_len > 10) return write(file, parts[0].iov_base, 10); /* A little still fits, */
        errno = ENOSPC;                                                                    /* the rest does not. */
        return -1;
    }
    return real(file, parts, count);
}

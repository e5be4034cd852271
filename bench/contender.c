/* The loop of commands, and the figures as JSON. */
#include "contender.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LINE_SIZE 4096

static int64_t clock_ns(clockid_t clock) {
    struct timespec time;
    if (clock_gettime(clock, &time) != 0) {
        contender_fatal("clock_gettime: %s", strerror(errno));
    }
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t contender_now_ns(void) {
    return clock_ns(CLOCK_MONOTONIC);
}

int64_t contender_now_us(void) {
    return contender_now_ns() / 1000;
}

int64_t contender_cpu_ns(void) {
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void contender_fatal(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    (void)fputc('\n', stderr);
    exit(1);
}

int contender_open_socket(const char *at) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    const char *colon = strrchr(at, ':');
    char host[64];
    int one = 1, fd;
    if (!colon || (size_t)(colon - at) >= sizeof host) {
        errno = EINVAL;
        return -1;
    }
    (void)snprintf(host, sizeof host, "%.*s", (int)(colon - at), at);
    address.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) {
        errno = EINVAL;
        return -1;
    }
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && (connect(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
                    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static void json_string(FILE *out, const char *text) {
    (void)fputc('"', out);
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\') {
            (void)fprintf(out, "\\%c", byte);
        } else if (byte < 0x20) {
            (void)fprintf(out, "\\u%04x", byte);
        } else {
            (void)fputc(byte, out);
        }
    }
    (void)fputc('"', out);
}

void contender_write_samples(FILE *json, const char *name, const struct contender_samples *samples) {
    (void)fprintf(json, ",\"%s\":[", name);
    for (size_t i = 0; i < samples->count; i++) {
        (void)fprintf(json, "%s%.1f", i ? "," : "", (double)samples->ns[i] / 1000.0);
    }
    (void)fputc(']', json);
}

static void json_error(FILE *out, const char *error) {
    if (*error) {
        (void)fputs(",\"error\":", out);
        json_string(out, error);
    }
}

void contender_samples_begin(struct contender_samples *samples, size_t wanted) {
    samples->wanted = wanted;
    samples->ns = wanted ? malloc(wanted * sizeof *samples->ns) : NULL;
    if (wanted && !samples->ns) {
        contender_fatal("no memory for %zu samples", wanted);
    }
    /* Touch the pages before the clock starts. */
    if (wanted) {
        memset(samples->ns, 0, wanted * sizeof *samples->ns);
    }
}

void contender_samples_end(struct contender_samples *samples) {
    free(samples->ns);
    samples->ns = NULL;
}

void contender_write_cycles(FILE *json, const struct contender_cycles *cycles) {
    (void)fprintf(json, "\"cycles\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"seconds\":%.6f", cycles->cycles,
                  cycles->failed, (double)cycles->took_ns / 1e9);
    contender_write_samples(json, "acquire_us", &cycles->acquire);
    contender_write_samples(json, "release_us", &cycles->release);
}

bool contender_read_cycles(const char *arguments, struct contender_cycles *cycles) {
    size_t samples;
    if (sscanf(arguments, "%u %" SCNd64 " %zu %u", &cycles->workers, &cycles->duration_ms, &samples, &cycles->rest_us) <
            3 ||
        cycles->workers < 1 || cycles->workers > CONTENDER_WORKERS_MAX || samples > CONTENDER_SAMPLES_MAX) {
        return false;
    }
    contender_samples_begin(&cycles->acquire, samples);
    contender_samples_begin(&cycles->release, samples);
    return true;
}

static void done(void) {
    (void)fputs("done\n", stdout);
    (void)fflush(stdout);
}

static void answer_error(const char *error) {
    done();
    (void)fputs("{\"error\":", stdout);
    json_string(stdout, error);
    (void)fputs("}\n", stdout);
}

static void command_connect(const struct contender *contender, void *data, char *arguments) {
    struct contender_nodes nodes = {0};
    char error[CONTENDER_ERROR_SIZE] = "", *rest = NULL;
    for (char *node = strtok_r(arguments, " ", &rest); node; node = strtok_r(NULL, " ", &rest)) {
        if (nodes.count == CONTENDER_NODES_MAX) {
            answer_error("too many nodes");
            return;
        }
        nodes.at[nodes.count++] = node;
    }
    if (nodes.count == 0) {
        answer_error("connect needs HOST:PORT …");
        return;
    }
    contender->connect(data, &nodes, error);
    if (*error) {
        answer_error(error);
    } else {
        done();
        (void)fputs("{}\n", stdout);
    }
}

static void command_cycles(const struct contender *contender, void *data, const char *arguments) {
    struct contender_cycles cycles = {0};
    char error[CONTENDER_ERROR_SIZE] = "";
    if (!contender_read_cycles(arguments, &cycles)) {
        answer_error("cycles needs WORKERS MS SAMPLES");
        return;
    }
    contender->cycles(data, &cycles, error);
    if (*error && cycles.cycles + cycles.failed == 0) {
        answer_error(error);
    } else {
        done();
        (void)fputc('{', stdout);
        contender_write_cycles(stdout, &cycles);
        json_error(stdout, error);
        (void)fputs("}\n", stdout);
    }
    contender_samples_end(&cycles.acquire);
    contender_samples_end(&cycles.release);
}

size_t contender_wait_begin(struct contender_contest *contest, unsigned client) {
    if (contest->count == contest->room) {
        contest->room = contest->room ? 2 * contest->room : 4096;
        contest->waits = realloc(contest->waits, contest->room * sizeof *contest->waits);
        if (!contest->waits) {
            contender_fatal("no memory for %zu waits", contest->room);
        }
    }
    contest->waits[contest->count] = (struct contender_wait){.client = client, .began_us = contender_now_us()};
    return contest->count++;
}

long long contender_counter_read(const char *path) {
    long long value;
    FILE *file = fopen(path, "r");
    if (!file || fscanf(file, "%lld", &value) != 1) {
        contender_fatal("%s: there is no counter", path);
    }
    (void)fclose(file);
    return value;
}

void contender_counter_write(const char *path, long long value) {
    FILE *file = fopen(path, "w");
    if (!file || fprintf(file, "%lld", value) < 0 || fclose(file) != 0) {
        contender_fatal("%s: %s", path, strerror(errno));
    }
}

/* Reads the arguments of `line` or `loop`. Returns false if they have another form. */
static bool read_contest(char *arguments, struct contender_contest *contest) {
    int used = 0;
    if (sscanf(arguments, "%u %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %n", &contest->clients, &contest->hold_us,
               &contest->begin_us, &contest->space_us, &contest->end_us, &used) != 5 ||
        contest->clients > CONTENDER_CLIENTS_MAX || arguments[used] == '\0') {
        return false;
    }
    if (!contest->again) {
        return sscanf(arguments + used, "%" SCNd64, &contest->free_us) == 1;
    }
    contest->counter = strcmp(arguments + used, "-") == 0 ? NULL : arguments + used;
    return true;
}

static void command_contend(const struct contender *contender, void *data, bool again, char *arguments) {
    struct contender_contest contest = {.again = again};
    char error[CONTENDER_ERROR_SIZE] = "";
    if (!contender->contend) {
        answer_error("unsupported");
        return;
    }
    if (!read_contest(arguments, &contest)) {
        answer_error(again ? "loop needs CLIENTS HOLD_US BEGIN_US SPACE_US END_US COUNTER"
                           : "line needs WAITERS HOLD_US BEGIN_US SPACE_US END_US FREE_US");
        return;
    }
    contender->contend(data, &contest, error);
    done();
    (void)fputs("{\"waits\":[", stdout);
    for (size_t i = 0; i < contest.count; i++) {
        const struct contender_wait *wait = &contest.waits[i];
        (void)printf("%s[%u,%" PRId64 ",%" PRId64 ",%" PRId64 "]", i ? "," : "", wait->client, wait->began_us,
                     wait->granted_us, wait->released_us);
    }
    (void)printf("],\"failed\":%" PRIu64, contest.failed);
    json_error(stdout, error);
    (void)fputs("}\n", stdout);
    free(contest.waits);
}

static void command_other(const struct contender *contender, void *data, const char *command, const char *arguments) {
    char *text = NULL, error[CONTENDER_ERROR_SIZE] = "";
    size_t size;
    FILE *json = open_memstream(&text, &size);
    if (!json) {
        contender_fatal("open_memstream: %s", strerror(errno));
    }
    bool known = contender->other && contender->other(data, command, arguments, json, error);
    if (fclose(json) != 0) {
        contender_fatal("no memory for an answer");
    }
    if (!known || *error) {
        answer_error(known ? error : "unsupported");
    } else {
        done();
        (void)printf("{%s}\n", text);
    }
    free(text);
}

int contender_run(const struct contender *contender, void *data) {
    static const char space[] = " ";
    char line[LINE_SIZE];
    (void)fputs("{\"name\":", stdout);
    json_string(stdout, contender->name);
    (void)fputs(",\"version\":", stdout);
    json_string(stdout, contender->version);
    (void)fputs(",\"language\":\"C\",\"notes\":", stdout);
    json_string(stdout, contender->notes);
    (void)fputs("}\n", stdout);
    while (fflush(stdout) == 0 && fgets(line, sizeof line, stdin)) {
        char *command = line, *arguments = line + strcspn(line, "\n");
        *arguments = '\0';
        arguments = line + strcspn(line, space);
        if (*arguments) {
            *arguments++ = '\0';
        }
        if (strcmp(command, "connect") == 0) {
            command_connect(contender, data, arguments);
        } else if (strcmp(command, "cycles") == 0) {
            command_cycles(contender, data, arguments);
        } else if (strcmp(command, "line") == 0 || strcmp(command, "loop") == 0) {
            command_contend(contender, data, strcmp(command, "loop") == 0, arguments);
        } else {
            command_other(contender, data, command, arguments);
        }
    }
    return ferror(stdin) || ferror(stdout) ? 1 : 0;
}

/* The compose file: what must be in it, and what we lay over it for experiments. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/backend_compose.h"

enum { IMAGE_MAX = 256 };

size_t chaos_compose_argv(const struct chaos_compose *compose, bool with_override, const char **argv) {
    size_t argc = 0;
    if (compose->plugin) {
        argv[argc++] = "docker";
    }
    argv[argc++] = compose->plugin ? "compose" : "docker-compose";
    argv[argc++] = "-p";
    argv[argc++] = compose->project;
    argv[argc++] = "-f";
    argv[argc++] = compose->file;
    if (with_override) {
        argv[argc++] = "-f";
        argv[argc++] = compose->override;
    }
    return argc;
}

/*
 * The image of a service, out of what `config` prints: both versions of compose lay it out alike,
 * two blanks a level. False if there is no such service.
 */
static bool find_image(const char *config, const char *service, char *image) {
    bool in_services = false, in_service = false, found = false;
    char key[64];
    snprintf(key, sizeof key, "%s:", service);
    image[0] = '\0';
    for (const char *line = config; *line != '\0';) {
        size_t length = strcspn(line, "\r\n"), indent = strspn(line, " ");
        const char *word = line + indent;
        size_t word_length = length > indent ? length - indent : 0;
        if (indent == 0 && word_length > 0) {
            in_services = word_length == 9 && strncmp(word, "services:", 9) == 0;
        } else if (indent == 2 && word_length > 0) {
            in_service = in_services && word_length == strlen(key) && strncmp(word, key, word_length) == 0;
            found |= in_service;
        } else if (indent == 4 && in_service && word_length > 7 && strncmp(word, "image: ", 7) == 0) {
            snprintf(image, IMAGE_MAX, "%.*s", (int)(word_length - 7), word + 7);
        }
        line += length + (line[length] != '\0');
    }
    return found;
}

static bool check_image(const char *image, struct chaos_error *error) {
    struct chaos_said said;
    CHAOS_DOCKER(&said, "image", "inspect", "--format", "{{.Id}}", image);
    return said.status == 0 ||
           chaos_fail(
               error,
               "the image %s is not here (%.200s): get it by `docker pull %s`; or make one of the installed "
               "redis-server by "
               "`test/compose/local-image.sh`, and set REDLOCK_NODE_IMAGE=redlock-node REDLOCK_NODE_VERSION=local",
               image, chaos_said_why(&said), image);
}

bool chaos_compose_check_file(const struct chaos_compose *compose, size_t nodes, struct chaos_error *error) {
    struct chaos_said said;
    const char *argv[16] = {0};
    argv[chaos_compose_argv(compose, false, argv)] = "config";
    chaos_program_run(argv, NULL, -1, CHAOS_DOCKER_MS, &said);
    if (said.status != 0) {
        return chaos_fail(error, "the compose file %s is not sound: %.400s", compose->file, chaos_said_why(&said));
    }
    char checked[IMAGE_MAX] = "", image[IMAGE_MAX], service[32];
    for (size_t n = 0; n < nodes; n++) {
        snprintf(service, sizeof service, "node%zu", n + 1);
        if (!find_image(said.text, service, image) || image[0] == '\0') {
            return chaos_fail(
                error,
                "the compose file %s has no service %s with an image: for %zu nodes it needs node1 to node%zu; "
                "ask for fewer, or "
                "add them",
                compose->file, service, nodes, nodes);
        }
        if (strcmp(image, checked) != 0 && !check_image(image, error)) {
            return false;
        }
        memcpy(checked, image, sizeof checked);
    }
    return true;
}

/* As YAML reads it: in double quotes. A $ would be taken for a variable. */
static void quote(FILE *out, const char *text) {
    fputc('"', out);
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\') {
            fprintf(out, "\\%c", byte);
        } else if (byte < 0x20) {
            fprintf(out, "\\x%02x", byte);
        } else {
            fprintf(out, byte == '$' ? "$$" : "%c", byte);
        }
    }
    fputc('"', out);
}

static void write_bind(FILE *out, const char *source, const char *target, bool read_only) {
    fputs("      - {type: bind, source: ", out);
    quote(out, source);
    fprintf(out, ", target: \"%s\"%s}\n", target, read_only ? ", read_only: true" : "");
}

static void write_node(FILE *out, const struct chaos_backend *backend, size_t n) {
    const struct chaos_compose *compose = backend->own;
    const struct chaos_backend_options *options = &backend->options;
    fprintf(out, "  node%zu:\n    container_name: \"%s\"\n", n + 1, compose->names[n]);
    /* Its files must be ours. As root, the image may change to another user. */
    fprintf(out, "    user: \"%u:%u\"\n", (unsigned)geteuid(), (unsigned)getegid());
    fprintf(out, "    working_dir: \"%s/data\"\n", CHAOS_COMPOSE_MOUNT);
    fprintf(out,
            "    command: [\"--protected-mode\", \"no\", \"--save\", \"\", \"--appendonly\", \"%s\", "
            "\"--appendfsync\", \"always\",\n"
            "      \"--maxmemory-policy\", \"noeviction\", \"--enable-debug-command\", \"yes\",\n"
            "      \"--user\", \"default\", \"on\", \"nopass\", \"~*\", \"&*\", \"+@all\",\n"
            "      \"--user\", \"chaos\", \"on\", \">chaos\", \"~*\", \"&*\", \"+@all\"]\n",
            options->append_only ? "yes" : "no");
    /* We ask the nodes ourselves, so health checks are only noise. docker-compose 1.29 cannot
     * switch off a check that a file has. */
    fputs("    restart: \"no\"\n    healthcheck: {interval: 24h}\n", out);
    if (options->shim != NULL) {
        fprintf(out, "    environment: {LD_PRELOAD: \"%s\", %s: \"%s/clock\"}\n", CHAOS_COMPOSE_SHIM, CHAOS_CLOCK_ENV,
                CHAOS_COMPOSE_MOUNT);
    }
    fputs("    volumes:\n", out);
    write_bind(out, backend->directories[n], CHAOS_COMPOSE_MOUNT, false);
    if (options->shim != NULL) {
        write_bind(out, options->shim, CHAOS_COMPOSE_SHIM, true);
    }
}

bool chaos_compose_write_override(const struct chaos_backend *backend, struct chaos_error *error) {
    const struct chaos_compose *compose = backend->own;
    FILE *out = fopen(compose->override, "we");
    bool worked = out != NULL;
    if (worked) {
        fputs("# Laid over docker-compose.yml by redlock-chaos for one run.\nservices:\n", out);
        for (size_t n = 0; n < backend->options.nodes; n++) {
            write_node(out, backend, n);
        }
        worked = !ferror(out);
        worked = fclose(out) == 0 && worked;
    }
    return worked || chaos_fail(error, "cannot write %s: %s", compose->override, strerror(errno));
}

/* Runs a fuzzer's function without libFuzzer: over a corpus, and over mutations of it from fixed
 * seeds. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_SIZE_MAX 65536
#ifndef MUTATIONS
#define MUTATIONS 3000 /* of each file of the corpus */
#endif
#define PIECES 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t random_state;

static uint32_t random_below(uint32_t limit) {
    random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)((random_state >> 33) % limit);
}

/* Changes, removes, repeats and cuts a few bytes. */
static size_t mutate(uint8_t *data, size_t size) {
    static const char spice[] = "\r\n*$:+-%@/[]?0123456789,(#_~>|";
    for (uint32_t i = 1 + random_below(PIECES); i > 0 && size > 0; i--) {
        size_t at = random_below((uint32_t)size), length = 1 + random_below(16);
        length = length < size - at ? length : size - at;
        switch (random_below(5)) {
        case 0:
            data[at] = (uint8_t)random_below(256);
            break;
        case 1:
            data[at] = (uint8_t)spice[random_below(sizeof spice - 1)];
            break;
        case 2:
            memmove(data + at, data + at + length, size - at - length);
            size -= length;
            break;
        case 3:
            if (size + length <= INPUT_SIZE_MAX) {
                memmove(data + at + length, data + at, size - at);
                size += length;
            }
            break;
        default:
            size = at;
        }
    }
    return size;
}

/* Copies the bytes to a buffer of exactly this size, so that a sanitizer sees any read past the
 * end. */
static void run(const uint8_t *data, size_t size) {
    uint8_t *exact = malloc(size + (size == 0));
    if (exact == NULL) {
        abort();
    }
    memcpy(exact, data, size);
    (void)LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

static void run_file(const char *path) {
    static uint8_t original[INPUT_SIZE_MAX], mutated[INPUT_SIZE_MAX];
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    size_t size = fread(original, 1, sizeof original, file);
    (void)fclose(file);
    run(original, size);
    for (uint64_t seed = 0; seed < MUTATIONS; seed++) {
        random_state = seed + size;
        memcpy(mutated, original, size);
        run(mutated, mutate(mutated, size));
    }
}

int main(int argc, char **argv) {
    unsigned files = 0;
    DIR *directory = argc == 2 ? opendir(argv[1]) : NULL;
    if (directory == NULL) {
        (void)fprintf(stderr, "usage: %s CORPUS_DIRECTORY\n", argv[0]);
        return 1;
    }
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char path[4096];
        if (entry->d_name[0] == '.') {
            continue;
        }
        (void)snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        run_file(path);
        files++;
    }
    (void)closedir(directory);
    if (files == 0) {
        (void)fprintf(stderr, "%s: no file in %s\n", argv[0], argv[1]);
        return 1;
    }
    printf("%u files, %u mutations each\n", files, (unsigned)MUTATIONS);
    return 0;
}

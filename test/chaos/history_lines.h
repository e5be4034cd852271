/* A small complete history, line by line, for the tests that read it. */
#ifndef CHAOS_TEST_HISTORY_LINES_H
#define CHAOS_TEST_HISTORY_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "history/history.h"

#define START                                                                                                          \
    "{\"t\":1000,\"event\":\"start\",\"version\":\"redis 7.0.15\",\"command\":\"redlock-chaos run\",\"backend\":"      \
    "\"process\",\"experiment\":\"split\",\"seed\":-2,\"nodes\":3,\"clients\":4,\"resources\":[\"a\",\"b\"],\"ttl_"    \
    "ms\":"                                                                                                            \
    "2000,\"node_timeout_ms\":50,\"wait_ms\":10000,\"breaks_assumptions\":false}\n"
#define CLAIM                                                                                                          \
    "{\"t\":1110,\"event\":\"claim\",\"client\":1,\"resource\":2,\"token\":\"0123456789abcdef\",\"until\":2900}\n"
#define END                                                                                                            \
    "{\"t\":1200,\"event\":\"end\",\"client\":1,\"resource\":2,\"token\":\"0123456789abcdef\",\"how\":\"release\"}\n"
#define INVOKE                                                                                                         \
    "{\"t\":1100,\"event\":\"invoke\",\"client\":1,\"op\":7,\"what\":\"acquire\",\"resource\":2,\"deadline\":11100}\n"
#define COMPLETE                                                                                                       \
    "{\"t\":1109,\"event\":\"complete\",\"client\":1,\"op\":7,\"result\":\"OK\",\"attempts\":2,\"token\":"             \
    "\"0123456789abcdef\",\"votes\":\"GGP\",\"message\":\"\"}\n"
#define FAULT                                                                                                          \
    "{\"t\":1300,\"event\":\"fault\",\"id\":1,\"kind\":\"partition\",\"nodes\":[1,3],\"clients\":[2,4],\"amount\":0,"  \
    "\"text\":\"cut off\",\"error\":\"\"}\n"
#define HEAL  "{\"t\":1400,\"event\":\"heal\",\"id\":1,\"error\":\"\"}\n"
#define SPAWN "{\"t\":1010,\"event\":\"spawn\",\"client\":1,\"pid\":500}\n"
#define EXIT  "{\"t\":1900,\"event\":\"exit\",\"client\":1,\"pid\":500,\"status\":-1,\"signal\":9,\"expected\":true}\n"
#define INTENT                                                                                                         \
    "{\"t\":1120,\"event\":\"intent\",\"client\":1,\"resource\":2,\"token\":\"0123456789abcdef\",\"read\":41}\n"
#define DONE                                                                                                           \
    "{\"t\":1130,\"event\":\"done\",\"client\":1,\"resource\":2,\"token\":\"0123456789abcdef\",\"read\":41,\"until\":" \
    "2900}\n"
#define KEYS                                                                                                           \
    "{\"t\":1140,\"event\":\"keys\",\"to\":1145,\"resource\":2,\"nodes\":[null,[\"\",0],[\"0123456789abcdef\",-1]]}\n"
#define LEFT   "{\"t\":5000,\"event\":\"left\",\"what\":[\"a key\"]}\n"
#define FINISH "{\"t\":5001,\"event\":\"finish\",\"counters\":[0,42]}\n"

static const char *const whole[] = {START, SPAWN, INVOKE, COMPLETE, CLAIM, INTENT, DONE,
                                    KEYS,  END,   FAULT,  HEAL,     EXIT,  LEFT,   FINISH};
enum { EVENTS = sizeof whole / sizeof *whole };

/* Reads these bytes as "h.jsonl" into an uninitialized history. Returns what chaos_history_read()
 * returns. */
bool lines_read(const char *bytes, size_t length, struct chaos_history *history, struct chaos_error *error);

/* Asserts that this text is refused with an error that says so. */
void lines_refuse(const char *text, const char *sentence);

#endif

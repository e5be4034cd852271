/* A handshake with no server: the test reads what is said, and answers. */
#ifndef REDLOCK_TEST_HANDSHAKE_KIT_H
#define REDLOCK_TEST_HANDSHAKE_KIT_H

#include "server/handshake.h"
#include "wire/script.h"

#define MARK            "s00000000000000000000000000000001"
#define OTHER           "s00000000000000000000000000000002"
#define THIRD           "s00000000000000000000000000000003"
#define PING            "*1\r\n$4\r\nPING\r\n"
#define HELLO           "*1\r\n$4\r\nINFO\r\n*1\r\n$4\r\nTIME\r\n*2\r\n$6\r\nCLIENT\r\n$2\r\nID\r\n"
#define A_TIME          "*2\r\n$10\r\n1763791726\r\n$5\r\n50413\r\n"
#define NAME            "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$2\r\nme\r\n"
#define WAITING         REDLOCK_HANDSHAKE_WAITING
#define NOTHING_MISSING "*2\r\n$0\r\n\r\n$0\r\n\r\n"

extern struct redlock_server_options options;
extern struct redlock_address address;
extern struct redlock_handshake handshake;
extern struct redlock_outbox outbox;

int handshake_setup(void **state);
int handshake_teardown(void **state);
void assert_said(const char *expected);
enum redlock_handshake_state reply(const char *bytes);
enum redlock_handshake_state reply_info(const char *text);
void start(void);
void assert_introduced(const char *begin);
void load(void);
void finish(void);
void assert_refused(const char *bytes, enum redlock_handshake_state state, enum redlock_cause cause, const char *words);
void until_probe(const char *info);

#endif

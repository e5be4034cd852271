/* A server that hears AUTH, and answers as the test says. */
#ifndef TEST_UNIT_CREDENTIALS_KIT_H
#define TEST_UNIT_CREDENTIALS_KIT_H

#include "server/server_state.h"
#include "subscriber.h"

#define OLD       "*3\r\n$4\r\nAUTH\r\n$3\r\nbob\r\n$6\r\ngeheim\r\n"
#define NEW       "*3\r\n$4\r\nAUTH\r\n$3\r\nbob\r\n$5\r\nneu-1\r\n"
#define NEWER     "*3\r\n$4\r\nAUTH\r\n$3\r\nbob\r\n$5\r\nneu-2\r\n"
#define ALICE     "*3\r\n$4\r\nAUTH\r\n$5\r\nalice\r\n$5\r\nneu-3\r\n"
#define WITH_PING "*2\r\n$4\r\nPING\r\n$12\r\nredlock-auth\r\n"
#define ECHO      "$12\r\nredlock-auth\r\n"
#define REFUSED   "-WRONGPASS invalid username-password pair or user is disabled.\r\n"

void offer(const char *user, const char *password);
void hear_auth(const char *auth);
void welcome(const char *version);
void refuse_handshake(void);
void connect_with(const char *auth);
void assert_accepted(void);
void assert_no_secret_in(const char *text);
int credentials_teardown(void **state);

#endif

/* A node over a real loop, and the server's ends of its two connections. */
#ifndef TEST_UNIT_SUBSCRIBER_H
#define TEST_UNIT_SUBSCRIBER_H

#include "peer.h"

#define INFO   "*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n"
#define NAME   "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$6\r\nme-sub\r\n"
#define LISTEN "*2\r\n$9\r\nSUBSCRIBE\r\n$2\r\nch\r\n"
#define ID     "*2\r\n$6\r\nCLIENT\r\n$2\r\nID\r\n"
#define KILL   "*4\r\n$6\r\nCLIENT\r\n$4\r\nKILL\r\n$2\r\nID\r\n$1\r\n9\r\n"
#define HELLO  INFO ID NAME LISTEN

#define RUN_ID_R1  "$11\r\nrun_id:r1\r\n\r\n:9\r\n" /* and the id of the connection */
#define SUBSCRIBED "*3\r\n$9\r\nsubscribe\r\n$2\r\nch\r\n:1\r\n"
#define MESSAGE    "*3\r\n$7\r\nmessage\r\n$2\r\nch\r\n"
#define A_PUSH     MESSAGE "$66\r\n000000000900000000000000000077 3 1763791726 50413 tok key with 5\n\x01\r\n"
#define PING       "*1\r\n$4\r\nPING\r\n"
#define PONG       "*2\r\n$4\r\npong\r\n$0\r\n\r\n"

/* The first connection, with the node and what it told; and the second, where only the server's end
 * is used. */
extern struct peer peer, second;

/* The first alone. */
int first_setup(void **state);
int first_teardown(void **state);
/* Both. */
int subscriber_setup(void **state);
int subscriber_setup_with_password(void **state); /* bob, geheim */
int subscriber_teardown(void **state);

/* The first connection, as server "r1". */
void connect_it(void);
/* The second, until the node tells that it listens. */
void greet_second(void);
/* The same, after a connection that may be dead: it is killed first. */
void greet_second_that_kills(void);
/* Both. */
void listen_on_it(void);

/* Until it is told once more. */
void until_told(enum redlock_listening listening, const char *words);
int count_in_log(const char *words);
/* Nobody connects, for longer than the first delays. */
void assert_nobody_comes(void);

#endif

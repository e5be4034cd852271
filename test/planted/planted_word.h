/* What the last hint of a leader said, for the bug that believes it. */
#ifndef PLANTED_WORD_H
#define PLANTED_WORD_H

#include "core/leader.h"

extern struct redlock_leader_word redlock_planted_word;

#endif

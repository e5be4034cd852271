/* The scripts of planted bugs, made by redlock_plant() in CMakeLists.txt. */
#ifndef PLANTED_SCRIPTS_H
#define PLANTED_SCRIPTS_H

#include "core/planted.h"
#include "wire/script.h"

extern const struct redlock_script planted_scripts[REDLOCK_BUG_COUNT]; /* source NULL: none */

#endif

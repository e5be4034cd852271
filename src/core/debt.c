/* Releases that nodes still owe. */
#include "core/debt.h"

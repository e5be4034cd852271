/* mailbox */
#include "redlock/blocking.h"

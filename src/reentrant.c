/* reentrant */
#include "redlock/blocking.h"

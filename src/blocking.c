/* blocking */
#include "redlock/blocking.h"

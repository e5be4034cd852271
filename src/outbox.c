/* outbox */
#include "node.h"

/* handshake */
#include "node.h"

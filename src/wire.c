/* Wire. */
#include "wire.h"

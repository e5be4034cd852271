/* Shared error texts. */
#include "text.h"

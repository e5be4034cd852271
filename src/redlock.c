/* Composition root. */
#include "manager.h"

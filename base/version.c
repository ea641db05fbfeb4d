/* The version, from the Makefile: the one file that is compiled anew with each commit. */
#include "base/version.h"

const char sl_version[] = SL_VERSION " (" SL_COMMIT ")";
#define AGENT "sluice/" SL_VERSION " (" SL_COMMIT ")"
const char sl_user_agent[] = AGENT;
const char sl_user_agent_line[] = "user-agent: " AGENT;

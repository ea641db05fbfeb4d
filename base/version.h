/* Which Sluice this is. The version is the file VERSION's (Semantic Versioning, CHANGELOG.md says what that
 * covers), the commit that of the source tree it was built from; "unknown" outside of git. */
#ifndef SL_BASE_VERSION_H
#define SL_BASE_VERSION_H

extern const char sl_version[];         /* "0.9.0 (0123456789ab)" */
extern const char sl_user_agent[];      /* "sluice/0.9.0 (0123456789ab)": what HTTP requests say */
extern const char sl_user_agent_line[]; /* "user-agent: sluice/0.9.0 (0123456789ab)" */

#endif

# Writes HEADER with the revision of SOURCE; touches it only when the revision changed, so that nothing else rebuilds.
set(revision "")
find_package(Git QUIET)
if(GIT_FOUND)
  # Only the project's own checkout counts, not a repository that happens to contain an unpacked archive of it.
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} rev-parse --show-toplevel
                  OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(top STREQUAL SOURCE)
    execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} describe --always --dirty --abbrev=10 --exclude=*
                    OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endif()
set(text "#define STRATA_GIT_REVISION \"${revision}\"\n")
set(earlier "")
if(EXISTS ${HEADER})
  file(READ ${HEADER} earlier)
endif()
if(NOT text STREQUAL earlier)
  file(WRITE ${HEADER} "${text}")
endif()

# Run by cpack on the staged files: Debian and Fedora want manual pages compressed.
file(GLOB_RECURSE pages "${CPACK_TEMPORARY_DIRECTORY}/*.[1-9]")
list(FILTER pages INCLUDE REGEX "/man[1-9]/[^/]+$")
if(NOT pages)
	message(FATAL_ERROR "no manual page among the staged files in ${CPACK_TEMPORARY_DIRECTORY}")
endif()
execute_process(COMMAND gzip -9nf ${pages} COMMAND_ERROR_IS_FATAL ANY)

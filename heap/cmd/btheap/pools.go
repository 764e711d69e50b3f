package main

import (
	"regexp"
	"strings"
)

// pools matches functions and source files of pools that libraries allocate once and never free: call paths with
// these leak nothing. What matches only at the start of a name is found fast.
var pools = regexp.MustCompile("^(?:" + strings.Join([]string{
	// libstdc++: the emergency pool for exceptions, 72,704 bytes
	`.*eh_alloc\.cc`, `__gnu_cxx::__freeres`, `\(anonymous namespace\)::pool::pool`,
	// the loader: the list of loaded files, thread-local storage, messages of dlerror
	`_dl_new_object$`, `_dl_map_object_`, `_dl_allocate_tls`, `_dl_check_map_versions$`, `_dl_important_hwcaps$`, `_dlerror_`,
	`_dl_exception_create`, `allocate_dtv`, `__tls_get_addr`, `tls_get_addr_tail$`, `add_to_global_`,
	// the C library: buffers of standard streams, time zones, locales
	`_IO_file_doallocate$`, `__tzfile_read$`, `_nl_load_locale`, `_nl_intern_locale_data$`,
}, "|") + ")")

// The files the report embeds, turned into C++ by CMake (cmake/embed.cmake) at build time.
#pragma once

#include <string_view>

namespace strata::apps {

std::string_view asset_uplot_js();
std::string_view asset_uplot_css();
std::string_view asset_uplot_license();
std::string_view asset_report_js();
std::string_view asset_report_css();

}  // namespace strata::apps

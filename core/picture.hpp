// A picture that an environment draws of itself. Places are in pixels from the upper left corner, and may lie outside.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace raceway {

struct Colour {
  std::uint8_t red, green, blue;
};

class Picture {
 public:
  Picture(std::uint8_t* pixels, int width, int height) : pixels_(pixels), width_(width), height_(height) {}

  int width() const { return width_; }
  int height() const { return height_; }

  void fill(Colour colour) { rectangle(0, 0, width_, height_, colour); }

  void dot(int x, int y, Colour colour) {
    if (x < 0 || x >= width_ || y < 0 || y >= height_) return;
    std::uint8_t* pixel =
        pixels_ + (static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(x)) * 3;
    pixel[0] = colour.red;
    pixel[1] = colour.green;
    pixel[2] = colour.blue;
  }

  void rectangle(double left, double top, double right, double bottom, Colour colour) {
    within(left, top, right, bottom, colour, [](double, double) { return true; });
  }

  void disc(double x, double y, double radius, Colour colour) {
    within(x - radius, y - radius, x + radius, y + radius, colour,
           [=](double px, double py) { return (px - x) * (px - x) + (py - y) * (py - y) <= radius * radius; });
  }

  // With round ends.
  void line(double x0, double y0, double x1, double y1, double thickness, Colour colour) {
    const double dx = x1 - x0, dy = y1 - y0, square = dx * dx + dy * dy, half = thickness / 2;
    within(std::min(x0, x1) - half, std::min(y0, y1) - half, std::max(x0, x1) + half, std::max(y0, y1) + half, colour,
           [=](double px, double py) {
             const double along = square > 0 ? std::clamp(((px - x0) * dx + (py - y0) * dy) / square, 0.0, 1.0) : 0.0;
             const double away_x = px - x0 - along * dx, away_y = py - y0 - along * dy;
             return away_x * away_x + away_y * away_y <= half * half;
           });
  }

 private:
  // Paints the pixels of a box whose centres are inside of what `is_inside` says.
  template <class Inside>
  void within(double left, double top, double right, double bottom, Colour colour, Inside is_inside) {
    const int first_x = pixel(left, width_), last_x = pixel(right, width_);
    const int first_y = pixel(top, height_), last_y = pixel(bottom, height_);
    for (int y = first_y; y < last_y; ++y) {
      for (int x = first_x; x < last_x; ++x) {
        if (is_inside(x + 0.5, y + 0.5)) dot(x, y, colour);
      }
    }
  }

  // The first pixel whose centre is not before `place`; what is not a number is 0.
  static int pixel(double place, int size) {
    if (!(place > 0.0)) return 0;
    return static_cast<int>(std::min(std::ceil(place - 0.5), static_cast<double>(size)));
  }

  std::uint8_t* pixels_;
  int width_, height_;
};

}  // namespace raceway

// Classes of a library.
#pragma once

namespace shapes {
struct Shape {
	virtual ~Shape();
	virtual double area() const = 0;
};
struct Circle : Shape {
	double radius = 3;
	double area() const override;
};
struct Ring : Circle {
	double inner = 1;
	double area() const override;
};
}

#ifdef LIBRARY
shapes::Shape::~Shape() {}
double shapes::Circle::area() const { return radius * radius * 3; }
double shapes::Ring::area() const { return Circle::area() - inner; }
#endif
